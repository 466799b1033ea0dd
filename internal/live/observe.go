package live

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const pageSize = 500

// Observe returns a World with the XRs that refs name, the other XRs of the same and linked kinds, and everything that planning for them
// needs. It lists each kind once: those objects that carry the label selector, which is how Velero marks what a restore created. Only when
// one that is needed is not among them, because it was there before the restore, it lists the rest of the kind too.
func (c *Cluster) Observe(ctx context.Context, selector string, refs []xp.Ref) (*adoption.World, error) {
	o := &observer{cluster: c, world: adoption.NewWorld(), labelled: map[schema.GroupVersionKind]bool{}, whole: map[schema.GroupVersionKind]bool{}}
	for {
		more, err := o.observe(ctx, selector, o.world.Needs(append(o.world.Composites(), refs...)))
		if err != nil {
			return nil, err
		}
		if !more {
			return o.world, nil
		}
	}
}

type observer struct {
	cluster  *Cluster
	world    *adoption.World
	labelled map[schema.GroupVersionKind]bool
	whole    map[schema.GroupVersionKind]bool
}

// observe lists the kinds of what is needed and not there, and tells whether it listed any.
func (o *observer) observe(ctx context.Context, selector string, needs []xp.Ref) (bool, error) {
	more := false
	for _, r := range needs {
		gvk := r.GroupVersionKind()
		if o.world.Get(r) != nil || o.whole[gvk] {
			continue
		}
		more = true
		if !o.labelled[gvk] {
			o.labelled[gvk] = true
			if err := o.list(ctx, gvk, selector); err != nil {
				return false, err
			}

			continue
		}
		o.whole[gvk] = true
		if err := o.list(ctx, gvk, ""); err != nil {
			return false, err
		}
	}

	return more, nil
}

func (o *observer) list(ctx context.Context, gvk schema.GroupVersionKind, selector string) error {
	gvr, _, err := o.cluster.Resource(gvk)
	if meta.IsNoMatchError(err) {
		o.world.AddUnserved(gvk.GroupKind())
		o.whole[gvk] = true

		return nil
	}
	if err != nil {
		return err
	}
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for {
		list, err := o.cluster.client.Resource(gvr).List(ctx, options)
		// A kind that can only be created, such as a TokenReview, has no objects.
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			o.world.AddUnserved(gvk.GroupKind())
			o.whole[gvk] = true

			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot list %s: %w", gvr.GroupResource(), err)
		}
		for i := range list.Items {
			o.world.Add(ofKind(&list.Items[i], gvk))
		}
		if list.GetContinue() == "" {
			return nil
		}
		options.Continue = list.GetContinue()
	}
}

// ofKind gives an item of a list its kind, which some servers leave out.
func ofKind(u *unstructured.Unstructured, gvk schema.GroupVersionKind) *unstructured.Unstructured {
	if u.GetKind() == "" {
		u.SetGroupVersionKind(gvk)
	}

	return u
}
