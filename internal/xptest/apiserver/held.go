package apiserver

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// StartAt is when a test in a bubble begins.
const StartAt = "2026-01-02T12:00:00Z"

// Monday is the restore that has created what is restored.
var Monday = adoption.Requester{Restore: "velero/monday"}

// Held returns an object with a hold of the restore, and the restore's label.
func Held(own *unstructured.Unstructured, of hold.Hold) *unstructured.Unstructured {
	u := xptest.With(own, xptest.Labelled(xp.LabelRestore, "monday"))
	of.Restore = Monday.Restore
	xptest.Value(hold.Put(u, of))

	return u
}

// Restored returns an object as a restore leaves it: labelled, and held if it is an XR or a claim.
func Restored(u *unstructured.Unstructured) *unstructured.Unstructured {
	if xp.IsComposite(u) || xp.IsClaim(u) {
		return Held(u, hold.Hold{Since: StartAt})
	}

	return xptest.With(u, xptest.Labelled(xp.LabelRestore, "monday"))
}

// RestoredTree returns a claim, its XR, a nested XR and their MRs, all restored.
func RestoredTree() (objects []*unstructured.Unstructured, claim, xr, child *unstructured.Unstructured) {
	x, c := xptest.XR("x"), xptest.XR("c")
	deep, mine := xptest.MR("deep", xptest.ControlledBy(c), xptest.Reconciled()), xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	child = xptest.XR("c", xptest.ControlledBy(x), xptest.Refs(deep), xptest.Policy("Automatic"))
	claim = xptest.Claim("o", xptest.OfXR(x))
	xr = xptest.XR("x", xptest.ClaimedBy(claim), xptest.Refs(child, mine))

	return []*unstructured.Unstructured{
		Restored(claim), Restored(xr), Restored(child), Restored(deep), Restored(mine), Restored(xptest.Revision(xptest.RevisionName, x)),
	}, claim, xr, child
}
