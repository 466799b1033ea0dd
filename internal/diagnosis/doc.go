// Package diagnosis finds out of objects, of a backup or of a cluster, which trees they make and
// what is wrong with them. Each check is a file, and one rule for both where both can have the
// problem. It has no client and no clock.
package diagnosis
