package backupitem

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// noteUIDs notes on the stored copy of a composed object which XRs above it, or which claim, have
// their UID in its fields. It warns of the fields that a restore can't carry over to the new UIDs.
func (t *Tree) noteUIDs(ctx context.Context, u *unstructured.Unstructured) {
	if !xp.IsComposed(u) || !xp.HasUID(u) {
		return
	}
	var noted []xp.UIDOwner
	var paths []string
	for _, o := range t.resolver.above(ctx, u) {
		fields := xp.UIDFields(u, o.UID)
		for _, f := range fields {
			if f.IsIdentity(u) || f.NamesSecret() && !o.IsXR {
				paths = append(paths, f.Path)
			}
		}
		if len(fields) > 0 {
			noted = append(noted, o.UIDOwner)
		}
	}
	xp.SetUIDOwners(u, noted)
	if len(paths) > 0 && (xp.IsManaged(u) || xp.IsComposite(u)) {
		t.warnOfRisk(u, uidText, reason.UIDInIdentity.Messagef("has a UID in its %s: that of an XR or claim above it. A restored one has another, and Crossplane "+
			"would write that there, so a restore of this backup holds the XR until a user releases it. %s", strings.Join(paths, " and its "), insteadOfUID))
	}
}

const (
	uidText      = "have a UID in them that a restore changes"
	insteadOfUID = "Let the Composition take the value from a name, the namespace, or a label or field of the XR that has the old value, then back up again"
)

// An aboveItem is an XR above a composed object, or a claim.
type aboveItem struct {
	xp.UIDOwner

	IsXR bool
}

// above returns the XRs above a composed object and their claim, as far as they can be read.
func (res *Resolver) above(ctx context.Context, u *unstructured.Unstructured) []aboveItem {
	const most = 16
	var all []aboveItem
	for range most {
		c, ok := xp.Controller(u)
		if !ok {
			break
		}
		xr, err := res.get(ctx, xp.Ref{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: u.GetNamespace(), Name: c.Name})
		if err != nil || xr == nil || xr.GetUID() != c.UID || !xp.IsComposite(xr) {
			break // Its own backup warns of an XR that can't be read.
		}
		all = append(all, aboveItem{UIDOwner: xp.UIDOwner{Ref: xp.RefTo(xr), UID: xr.GetUID()}, IsXR: true})
		if r, ok := xp.CompositeFrom(xr).ClaimRef(); ok {
			if claim, err := res.get(ctx, r); err == nil && claim != nil && xp.Bound(xp.ClaimFrom(claim), xp.CompositeFrom(xr)) {
				all = append(all, aboveItem{UIDOwner: xp.UIDOwner{Ref: r, UID: claim.GetUID()}})
			}
		}
		u = xr
	}

	return all
}

// warnOfUIDs warns of objects of Kubernetes that an XR composes and that Crossplane can't change when
// the XR has another UID.
func (t *Tree) warnOfUIDs(composed []*unstructured.Unstructured) {
	for _, u := range composed {
		if paths := immutableUIDs(u); len(paths) > 0 {
			t.warnOfRisk(u, uidText, reason.UIDInImmutable.Messagef("has the UID of its XR in its %s, which can't be changed. A restored XR has another UID, so "+
				"Crossplane can't reconcile it until a user deletes that object. %s", strings.Join(paths, " and its "), insteadOfUID))
		}
	}
}

// fieldImmutable is a field of a trimmed object, with what immutableUIDs returns.
const fieldImmutable = "immutableUIDs"

// immutableUIDs returns the immutable fields of a Kubernetes object that have the UID of its
// controller in them.
func immutableUIDs(u *unstructured.Unstructured) []string {
	if found, ok := u.Object[fieldImmutable].(string); ok {
		return strings.Fields(found)
	}
	c, ok := xp.Controller(u)
	if !ok || xp.IsCustomGroup(u.GroupVersionKind().Group) {
		return nil
	}
	var paths []string
	for _, f := range xp.UIDFields(u, c.UID) {
		if f.IsImmutable(u) {
			paths = append(paths, f.Path)
		}
	}

	return paths
}
