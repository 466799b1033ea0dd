// Package forest generates random ownership forests, backs them up and restores them with the
// plugin's real actions, and checks the promised properties. It judges by what it knows of each
// generated object, never by what the plugin reports. A seed gives the same forest each time. Only
// tests import it: its own, with a cluster in memory, and test/restorer, with Velero's engine and
// an API server. Begin with scenario.go (Simulate) and property.go.
package forest
