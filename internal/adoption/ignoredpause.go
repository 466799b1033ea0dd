package adoption

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An ignoredPause is a pause of a hold that a provider ignored: it reconciled the paused MR.
type ignoredPause struct {
	why reason.Message
	// created means that the provider was about to create an external resource.
	created bool
}

// pauseIgnoredBy reports whether the provider of a held MR ignores the pause, as a provider with an
// old crossplane-runtime does. No hold works with it, and only the MR shows it: for a paused MR a
// provider writes one condition and nothing else (crossplane-runtime
// pkg/reconciler/managed/reconciler.go).
func pauseIgnoredBy(u *unstructured.Unstructured, h *hold.Hold) (by ignoredPause, ok bool) {
	if !xp.IsPaused(u) || h.OwnPause() || h.Again || h.Reported == nil {
		return ignoredPause{}, false
	}
	did, next := "began to create an external resource", "Look in the cloud for a second external resource"
	when, created := h.Reported.Created(u)
	if !created {
		did, next = "reconciled it", "Check its external resource and its connection secret"
		when, ok = h.Reported.Reconciled(u)
	}

	return ignoredPause{created: created, why: reason.PauseIgnored.Messagef("the provider of %s %s at %s, although it is held: it ignores %s, or another writer "+
		"had removed that. %s, upgrade the provider, then release this: %s", u.GroupVersionKind().Group, did, when.UTC().Format(time.RFC3339), xp.AnnotationPaused,
		next, releaseByForce(u))}, created || ok
}
