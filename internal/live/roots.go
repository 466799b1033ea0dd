package live

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Places are where to look for claims and XRs; the zero value is everywhere.
type Places struct {
	// Namespaces are the only ones to look into.
	Namespaces []string
	// Cluster selects cluster-scoped claims and XRs.
	Cluster bool
}

// Roots are claims and XRs.
type Roots struct {
	Objects []*unstructured.Unstructured
	// Kinds is how many kinds were read, and Unread are the errors of the others.
	Kinds  int
	Unread map[schema.GroupVersionKind]error
	// Unasked are the groups and versions whose kinds could not be read, with the reason.
	Unasked map[string]string
}

// Roots reads the claims and XRs in the places that the selector selects. It needs only the right
// to list.
func (c *Cluster) Roots(ctx context.Context, in Places, selector string) (Roots, error) {
	kinds, unasked, err := c.Kinds(ctx, xp.CategoryClaim, xp.CategoryComposite)
	if err != nil {
		return Roots{}, err
	}
	roots := Roots{Unread: map[schema.GroupVersionKind]error{}, Unasked: unasked}
	for _, gvk := range kinds {
		_, namespaced, err := c.Resource(gvk)
		if err != nil {
			roots.Unread[gvk] = err

			continue
		}
		var namespaces []string
		switch {
		case len(in.Namespaces) == 0 && !in.Cluster, !namespaced && in.Cluster:
			namespaces = []string{metav1.NamespaceAll}
		case namespaced:
			namespaces = in.Namespaces
		}
		read := len(namespaces) > 0
		for _, namespace := range namespaces {
			found, err := c.List(ctx, gvk, namespace, metav1.ListOptions{LabelSelector: selector})
			switch {
			case isUnserved(err):
			case err != nil:
				roots.Unread[gvk], read = err, false
			default:
				roots.Objects = slices.Concat(roots.Objects, found)
			}
		}
		if read {
			roots.Kinds++
		}
	}

	return roots, ctx.Err()
}
