// Package guard says which objects make an API server keep everybody but Velero and Crossplane from
// creating claims and XRs until a restore has brought them back. It has no client.
package guard
