package adoption

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
func pauseIgnoredBy(u *unstructured.Unstructured, h *Hold) (by ignoredPause, ok bool) {
	if !xp.IsPaused(u) || h.ownPause() || h.Again || h.Reported == nil {
		return ignoredPause{}, false
	}
	group := u.GroupVersionKind().Group
	if when, created := h.Reported.created(u); created {
		return ignoredPause{created: true, why: reason.PauseIgnored.Messagef("the provider of %s began to create an external resource at %s, although it is "+
			"held: it ignores %s, or another writer had removed that. Look in the cloud for a second external resource, upgrade the provider, then release this: %s",
			group, when.UTC().Format(time.RFC3339), xp.AnnotationPaused, releaseByForce(u))}, true
	}
	when, ok := h.Reported.reconciled(u)
	if !ok {
		return ignoredPause{}, false
	}

	return ignoredPause{why: reason.PauseIgnored.Messagef("the provider of %s reconciled it at %s, although it is held: it ignores %s, or another writer had "+
		"removed that. Check its external resource and its connection secret, upgrade the provider, then release this: %s",
		group, when.UTC().Format(time.RFC3339), xp.AnnotationPaused, releaseByForce(u))}, true
}
