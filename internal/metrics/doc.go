// Package metrics writes the numbers of a report for Prometheus, as OpenMetrics text. It has gauges
// only, without timestamps of samples, so that a Pushgateway and a textfile collector read the same
// text. Only hooks and the printer import it. Start reading at Report.
package metrics
