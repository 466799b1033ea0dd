package drill

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// AddDetails adds a key to the connection secret of each of the scene's databases that nothing
// publishes again. Many providers learn a password or a private key when they create a resource,
// and never after.
func (s Scene) AddDetails(ctx context.Context, c *stack.Cluster) error {
	all, err := s.objects(ctx, c)
	if err != nil {
		return err
	}
	secret := schema.GroupKind{Kind: "Secret"}
	for _, u := range all.objects {
		if owner := metav1.GetControllerOf(u); u.GroupVersionKind().GroupKind() != secret || owner == nil || owner.Kind != "Database" {
			continue
		}
		if err := Patch(ctx, c, u, map[string]any{"data": map[string]any{"root": "b25seSBhdCBjcmVhdGlvbg=="}}); err != nil {
			return err
		}
	}

	return nil
}
