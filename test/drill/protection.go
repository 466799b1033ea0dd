package drill

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// Unprotected returns the names of the scene's objects that are in use according to their Usages
// and could be deleted all the same. Crossplane records the attempt on the Usage; Unprotected
// removes that record.
func (s Scene) Unprotected(ctx context.Context, c *stack.Cluster) ([]string, error) {
	all, err := s.objects(ctx, c)
	if err != nil {
		return nil, err
	}
	var unprotected []string
	for id, u := range all.objects {
		if u.GetLabels()["crossplane.io/in-use"] != "true" {
			continue
		}
		r, err := c.Resource(ctx, u.GroupVersionKind(), u.GetNamespace())
		if err != nil {
			return nil, err
		}
		err = r.Delete(ctx, u.GetName(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "in-use") {
			unprotected = append(unprotected, fmt.Sprintf("%s: the answer to a delete was %v", id, err))
		}
		attempt := map[string]any{"usage.crossplane.io/deletion-attempt-with-policy": nil}
		if err := Patch(ctx, c, u, map[string]any{"metadata": map[string]any{"annotations": attempt}}); err != nil {
			return nil, err
		}
	}

	return unprotected, nil
}
