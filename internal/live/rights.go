package live

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Rights returns what the bindings of users grant to packages that run in Crossplane's namespace.
// It lists each kind once. It lists packages only if a binding seems to name a package's revision.
func (c *Cluster) Rights(ctx context.Context, namespace string) (diagnosis.Rights, error) {
	r := diagnosis.Rights{Namespace: namespace}
	read := func(kinds ...schema.GroupVersionKind) error {
		for _, gvk := range kinds {
			if err := c.Each(ctx, gvk, "", metav1.ListOptions{}, r.Add); err != nil && !isUnserved(err) {
				return err
			}
		}

		return nil
	}
	if err := read(xp.KindClusterRoleBinding, xp.KindRoleBinding); err != nil || !r.NamesRevisions() {
		return diagnosis.Rights{}, err
	}
	if err := read(xp.KindProviderRevision, xp.KindFunctionRevision, xp.KindRuntimeConfig); err != nil {
		return diagnosis.Rights{}, err
	}

	return r, nil
}
