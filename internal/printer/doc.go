// Package printer prints a report: as tables and trees, as an HTML page, and for programs as JSON,
// YAML or OpenMetrics. Only hooks imports it. Start reading at Print; a new format needs a Format
// there.
package printer
