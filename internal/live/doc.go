// Package live reads and writes the cluster through the API server; no other package has a client.
// It finds live owners, observes what adoption plans from and applies the planned changes. Only
// main.go and the commands in hooks import it; packages of decisions and actions must not. Begin
// with Cluster (cluster.go) for requests and Adopter (adopt.go) for a poll.
package live
