// Package restorer restores random forests with Velero's own engine, in this process, into a real
// API server with the garbage collector, and judges them as test/restorer/forest does. It is a module of
// its own, since it needs all of Velero.
package restorer
