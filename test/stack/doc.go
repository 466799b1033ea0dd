// Package stack runs the real thing on one machine as plain processes: etcd, kube-apiserver,
// kube-controller-manager, Crossplane, a function, providers and Velero with its plugins. It needs
// no container engine, no registry and no root.
//
// A Host is what outlives a cluster: the S3 server that holds the backups, and the cloud in which
// the external resources are. Any number of Clusters run on one Host. A Cluster can be made without
// Crossplane, restored into, and given Crossplane then. Nothing that a Host started outlives the
// process that made it, however that process ends.
package stack
