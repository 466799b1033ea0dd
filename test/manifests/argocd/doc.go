// Package argocd runs the health script of example/gitops/argocd as Argo CD does, on objects that
// this plugin holds.
package argocd
