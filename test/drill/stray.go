package drill

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// Prune deletes what an XR of the scene controls and does not list, and returns what that was. On a machine with much to do, Crossplane v1 composes
// a resource twice if it reconciles an XR before it has seen its own last write, and then forgets the first. That is no concern of a backup's test.
func (s Scene) Prune(ctx context.Context, c *stack.Cluster) ([]string, error) {
	all, err := s.objects(ctx, c)
	if err != nil {
		return nil, err
	}
	var pruned []string
	for _, u := range all.strays() {
		resource, err := c.Resource(ctx, u.GroupVersionKind(), u.GetNamespace())
		if err != nil {
			return nil, err
		}
		if err := resource.Delete(ctx, u.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("cannot delete the stray %s: %w", idOf(u), err)
		}
		pruned = append(pruned, idOf(u).String())
	}

	return pruned, nil
}

// strays returns what an XR controls and does not list.
func (f *forest) strays() []*unstructured.Unstructured {
	listed := map[types.UID]map[ID]bool{}
	for _, u := range f.objects {
		if isComposite(u) {
			listed[u.GetUID()] = map[ID]bool{}
			for _, r := range children(u) {
				listed[u.GetUID()][ID{Group: r.kind.Group, Kind: r.kind.Kind, Namespace: r.namespace, Name: r.name}] = true
			}
		}
	}
	var strays []*unstructured.Unstructured
	for id, u := range f.objects {
		if siblings, ok := listed[controller(u)]; ok && !siblings[id] {
			strays = append(strays, u)
		}
	}

	return strays
}
