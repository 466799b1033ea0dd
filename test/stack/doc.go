// Package stack runs the real stack on one machine as plain processes: etcd, kube-apiserver,
// kube-controller-manager, Crossplane, a function, providers and Velero with its plugins. It needs
// no container engine, no registry and no root.
//
// A Host outlives its clusters: it has the S3 server with the backups, and the cloud with the
// external resources. Any number of Clusters run on one Host. A Cluster can start without
// Crossplane, be restored into, and get Crossplane then. No process or temporary file of a Host
// outlives the process that made it, however that process ends.
package stack
