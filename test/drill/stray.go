package drill

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// Prune deletes the resources that an XR of the scene controls and does not list, and returns them.
// On a busy machine, Crossplane v1 composes a resource twice if it reconciles an XR before its
// cache has its own last write, and then forgets the first. A test of backups does not judge that.
func (s Scene) Prune(ctx context.Context, c *stack.Cluster) ([]string, error) {
	all, err := s.objects(ctx, c)
	if err != nil {
		return nil, err
	}

	return remove(ctx, c, all.strays())
}

// remove deletes objects and returns their names.
func remove(ctx context.Context, c *stack.Cluster, strays []*unstructured.Unstructured) ([]string, error) {
	var removed []string
	for _, u := range strays {
		resource, err := c.Resource(ctx, u.GroupVersionKind(), u.GetNamespace())
		if err != nil {
			return removed, err
		}
		if err := resource.Delete(ctx, u.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return removed, fmt.Errorf("cannot delete the stray %s: %w", idOf(u), err)
		}
		removed = append(removed, idOf(u).String())
	}

	return removed, nil
}

// strays returns the objects that an XR of the platform controls and does not list. It lists
// composed resources before XRs: an XR lists a resource before it creates it.
func (p Platform) strays(ctx context.Context, c *stack.Cluster) ([]*unstructured.Unstructured, error) {
	mrs, err := p.Managed(ctx, c)
	if err != nil {
		return nil, err
	}
	xrs, err := p.Composites(ctx, c)

	return strays(pointers(xrs), pointers(mrs)), err
}

func pointers(list []unstructured.Unstructured) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for i := range list {
		all = append(all, &list[i])
	}

	return all
}

// strays returns the objects that an XR controls and does not list.
func (f *sceneObjects) strays() []*unstructured.Unstructured {
	all := slices.Collect(maps.Values(f.objects))
	xrs := slices.DeleteFunc(slices.Clone(all), func(u *unstructured.Unstructured) bool { return !isComposite(u) })

	return strays(xrs, all)
}

func strays(xrs, all []*unstructured.Unstructured) []*unstructured.Unstructured {
	listed := map[types.UID]map[ID]bool{}
	for _, u := range xrs {
		listed[u.GetUID()] = map[ID]bool{}
		for _, r := range children(u) {
			listed[u.GetUID()][ID{Group: r.kind.Group, Kind: r.kind.Kind, Namespace: r.namespace, Name: r.name}] = true
		}
	}

	return slices.DeleteFunc(all, func(u *unstructured.Unstructured) bool {
		siblings, ok := listed[controller(u)]

		return !ok || siblings[idOf(u)]
	})
}
