// Package printer shows a report: to a person as tables and trees or as a page, and to programs as
// JSON, YAML, JUnit's XML or a graph.
package printer
