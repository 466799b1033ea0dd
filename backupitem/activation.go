package backupitem

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An activation has the objects that activate an MR's kind: policies, and the kind's
// ManagedResourceDefinition after them.
type activation struct {
	objects []*unstructured.Unstructured
	// err is why they are not known: what ref names can't be read.
	err error
	ref xp.Ref
}

// activations adds what activates the kinds of MRs. Like XRDs and Compositions that is the
// platform's. It follows from the kinds that the API server serves, so a tenant can't name any of
// it.
func (res *Resolver) activations(ctx context.Context, f *found, mrs ...*unstructured.Unstructured) {
	seen := map[schema.GroupKind]bool{}
	for _, mr := range mrs {
		gk := mr.GroupVersionKind().GroupKind()
		if seen[gk] || !xp.IsCustomGroup(gk.Group) || xp.IsComposite(mr) {
			continue
		}
		seen[gk] = true
		// It is read once, also if that fails.
		a, _ := cached(res.active, gk, func() (activation, error) { return res.activation(ctx, mr.GroupVersionKind()), nil })
		// The MRs are backed up without it, and thousands can be of one kind.
		if a.err != nil && res.isFirst(xp.Item{GroupResource: xp.ResourceManagedDefinition, Name: a.ref.Name}) {
			f.addUnreadable(a.ref, a.err)
		}
		for _, u := range a.objects {
			r := xp.ResourceManagedDefinition
			if xp.IsActivationPolicy(u) {
				r = xp.ResourceActivationPolicy
			}
			item := xp.Item{GroupResource: r, Name: u.GetName()}
			if !f.activating[item] && f.share(mr, u, item) {
				f.activating[item] = true
			}
		}
	}
}

// activation returns what activates a kind.
func (res *Resolver) activation(ctx context.Context, gvk schema.GroupVersionKind) activation {
	own, served, err := res.served(xp.KindManagedDefinition.GroupKind())
	ref := xp.Ref{APIVersion: xp.KindManagedDefinition.GroupVersion().String(), Kind: xp.KindManagedDefinition.Kind, Name: gvk.Kind}
	if err != nil || !served {
		return activation{err: err, ref: ref}
	}
	gvr, _, err := res.resource(gvk)
	if err != nil {
		return activation{err: err, ref: ref}
	}
	ref.APIVersion, ref.Name = own.GroupVersion().String(), gvr.GroupResource().String()
	mrd, err := res.fetch(ctx, ref)
	switch {
	case isAbsent(err):
		return activation{}
	case err != nil:
		return activation{err: err, ref: ref}
	}
	policies, err := res.policiesFor(ctx, ref.Name)
	ref.Kind = xp.KindActivationPolicy.Kind

	return activation{objects: append(policies, labelsOnly(mrd)), err: err, ref: ref}
}

// policiesFor returns the policies that activate an MRD. There are few.
func (res *Resolver) policiesFor(ctx context.Context, mrd string) ([]*unstructured.Unstructured, error) {
	gvk, served, err := res.served(xp.KindActivationPolicy.GroupKind())
	if err != nil || !served {
		return nil, err
	}
	all, err := cached(res.active, gvk, func() (all []*unstructured.Unstructured, err error) {
		err = res.each(ctx, gvk, "", metav1.ListOptions{}, func(u *unstructured.Unstructured) { all = append(all, u) })
		if isAbsent(err) {
			return all, nil
		}

		return all, err
	})
	if err != nil {
		return nil, err
	}
	var activating []*unstructured.Unstructured
	for _, u := range all {
		if xp.Activates(u, mrd) {
			activating = append(activating, labelsOnly(u))
		}
	}

	return activating, nil
}

// labelsOnly returns an object with its name and labels only. The schemas in an MRD are long.
func labelsOnly(u *unstructured.Unstructured) *unstructured.Unstructured {
	short := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}}
	short.SetName(u.GetName())
	short.SetLabels(u.GetLabels())

	return short
}
