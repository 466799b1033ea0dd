// Package archive reads the backups of Velero, as "velero backup download" writes them: a gzip'd
// tarball with a file of JSON for each item. It reads a stream and writes no file. A backup is not
// trusted: whoever could write to the bucket or to an object in the cluster has had a hand in it.
package archive
