package adoption

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Nothing takes back that an object is deleted. What is held stays held then, also when all that it
// waits for is there: Crossplane and providers do not delete what is paused (crossplane
// internal/controller/apiextensions/composite/reconciler.go; crossplane-runtime
// pkg/reconciler/managed/reconciler.go), so that a person can still choose. Its operation ends with
// that.
const (
	// keepExternalNext is how external resources are kept when the XR of what manages them goes.
	keepExternalNext = "; to keep the external resources, first have no MR that it composes delete its own (managementPolicies: all but Delete, " +
		"on v1 deletionPolicy: " +
		"Orphan), then let it go, and restore it again when it is gone: docs/gitops.md, \"It was deleted while it was held\""
	// restoreAgainNext is what to do when nothing is left to choose.
	restoreAgainNext = "; if it is to be there, restore it again when it is gone"
)

// deleted says what becomes of a held XR that is being deleted, and the next step.
func (t *tree) deleted(u *unstructured.Unstructured) string {
	if !xp.IsPaused(u) {
		return xp.String(u) + " is being deleted, and nothing keeps Crossplane from deleting all that it composes" + restoreAgainNext
	}
	why := fmt.Sprintf("%s is being deleted, and its hold keeps Crossplane from doing so; to let it go, with all that it composes, remove its annotation %s",
		xp.String(u), xp.AnnotationPaused) + keepExternalNext
	// Foreground propagation has the garbage collector delete first what the XR owns, whether the
	// XR is paused or not.
	too, absent := t.composedDeleted()
	if len(too) > 0 {
		why += "; these are deleted with it already, and their external resources as soon as their providers get to it: " + someOf(too)
	}
	if len(absent) > 0 {
		why += "; these are not there, deleted before it with their external resources or never restored: " + someOf(absent)
	}

	return why
}

// composedDeleted returns which of the composed resources are being deleted, and which are not
// there at all.
func (t *tree) composedDeleted() (too, absent []xp.Ref) {
	for _, r := range t.hold.Refs {
		u := t.snapshot.Get(r)
		if _, unknown := t.snapshot.isUnknown(r); u == nil && !unknown {
			absent = append(absent, r)
		}
		if u != nil && u.GetDeletionTimestamp() != nil {
			too = append(too, r)
		}
	}

	return too, absent
}

// claimDeleted says what becomes of the XR's claim if that is held and is being deleted, and the
// next step; "" if it is not.
func (t *tree) claimDeleted() string {
	claim, _ := t.heldClaim()
	if claim == nil || claim.GetDeletionTimestamp() == nil {
		return ""
	}

	return deletedClaim(claim, xp.RefTo(t.xr.Unstructured))
}

func deletedClaim(claim *unstructured.Unstructured, xr xp.Ref) string {
	if !xp.IsPaused(claim) {
		return fmt.Sprintf("%s is being deleted, and nothing keeps Crossplane from deleting %s", xp.String(claim), xr) + restoreAgainNext
	}

	return fmt.Sprintf("%[1]s is being deleted, and its hold keeps Crossplane from deleting %[2]s with it; to let both go, with all that is composed, remove the "+
		"annotation %[3]s of both; to keep %[2]s, remove the finalizers of %[1]s, and restore it again when it is gone: docs/gitops.md, \"It was deleted while it "+
		"was held\"", xp.String(claim), xr, xp.AnnotationPaused)
}

// deletedManaged says what becomes of a held MR that is being deleted, and the next step.
func deletedManaged(u *unstructured.Unstructured) string {
	if !xp.IsPaused(u) {
		return xp.String(u) + " is being deleted" + restoreAgainNext
	}

	return fmt.Sprintf("%s is being deleted, and its hold keeps its provider from doing so; to let it go, with its external resource, remove its annotation %s; "+
		"to keep that, first take Delete out of its managementPolicies (on v1 set deletionPolicy: Orphan), and restore it again when it is gone",
		xp.String(u), xp.AnnotationPaused)
}
