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
		if a.err != nil { // The MRs are backed up without it.
			gk := a.ref.GroupVersionKind().GroupKind()
			f.notes = append(f.notes, warning{of: a.ref, to: a.ref.String(), isLoss: true, once: true, why: unreadable(a.ref.String(), a.err, gk)})
		}
		for _, u := range a.objects {
			res.share(f, mr, u)
		}
	}
}

// activation returns what activates a kind.
func (res *Resolver) activation(ctx context.Context, gvk schema.GroupVersionKind) activation {
	own, served, err := res.served(xp.KindManagedDefinition.GroupKind())
	a := activation{err: err, ref: xp.Ref{APIVersion: xp.KindManagedDefinition.GroupVersion().String(), Kind: xp.KindManagedDefinition.Kind, Name: gvk.Kind}}
	if err != nil || !served {
		return a
	}
	gvr, _, err := res.resource(gvk)
	if err != nil {
		a.err = err

		return a
	}
	a.ref.APIVersion, a.ref.Name = own.GroupVersion().String(), gvr.GroupResource().String()
	mrd, err := res.fetch(ctx, a.ref)
	if isAbsent(err) {
		return activation{}
	}
	if err != nil {
		a.err = err

		return a
	}
	a.ref.Kind = xp.KindActivationPolicy.Kind
	a.objects, a.err = res.policiesFor(ctx, gvr.GroupResource().String())
	a.objects = append(a.objects, labelsOnly(mrd))

	return a
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
