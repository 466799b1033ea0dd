// Package archive reads Velero's backups as "velero backup download" writes them: a gzipped tarball
// with a JSON file for each item. It reads a stream and writes no file. A backup is not trusted:
// anyone with write access to the bucket or to an object in the cluster can have changed it. hooks
// and the dry run import the package. Start reading at Read.
package archive
