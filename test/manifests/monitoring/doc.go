// Package monitoring checks example/monitoring with Prometheus and a Pushgateway: the alerts fire on
// the metrics of damage and not on those of health, the dashboard's queries show something, the
// Jobs push what a Pushgateway takes, and kube-state-metrics reads fields that Velero has.
package monitoring
