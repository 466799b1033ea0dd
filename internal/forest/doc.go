// Package forest grows random ownership forests, backs them up and restores them through the
// plugin's real actions, and judges what comes of it by what is known of each object from the day
// it was grown, never by what the plugin says of itself. A forest is the same for the same seed.
// Nothing but tests imports it: one of this package with a cluster in memory, and test/restorer
// with Velero's own engine and a real API server.
package forest
