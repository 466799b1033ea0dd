// Package install checks example/install with the types of the projects that read it: Velero, Flux
// and kustomize, and with structs of its own for Argo CD and OADP. Each file must give Velero's Pod
// the container that "velero plugin add" gives it.
package install
