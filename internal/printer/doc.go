// Package printer prints a report: as tables and trees, as an HTML page, and for programs as JSON,
// YAML, JUnit XML, OpenMetrics or a Graphviz graph. Only hooks imports it. Start reading at Print; a new format
// needs a Format there.
package printer
