package adoption

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An unheeded hold is one that a provider ignored: it reconciled the paused MR.
type unheeded struct {
	why string
	// created means that the provider was about to create an external resource.
	created bool
}

// unheededBy reports whether the provider of a held MR ignores the pause, as a provider with an old
// crossplane-runtime does. No hold works with it, and only the MR shows it: for a paused MR a
// provider writes one condition and nothing else (crossplane-runtime
// pkg/reconciler/managed/reconciler.go). A time before the hold is from the backup. A time in the
// same second counts, since times have no fractions.
func unheededBy(u *unstructured.Unstructured, h *Hold) (by unheeded, ok bool) {
	if !xp.IsPaused(u) || h.ownPause() || h.Again || at(h.Since).IsZero() {
		return unheeded{}, false
	}
	group := u.GroupVersionKind().Group
	if when, created := createdHere(u); created && !when.Before(at(h.Since)) {
		return unheeded{created: true, why: fmt.Sprintf("the provider of %s was about to create an external resource for it at %s, though it is held: the provider "+
			"does not heed %s, as old ones don't, or somebody has taken that off meanwhile. Look in the cloud for a second external resource, upgrade the provider, "+
			"then let it go: %s", group, when.UTC().Format(time.RFC3339), xp.AnnotationPaused, releaseByForce(u))}, true
	}
	c, ok := xp.ConditionOf(u, xp.ConditionSynced)
	if !ok || c.Reason == xp.ReasonReconcilePaused || c.Since.Before(at(h.Since)) || c.Since.Before(u.GetCreationTimestamp().Time) {
		return unheeded{}, false
	}

	return unheeded{why: fmt.Sprintf("the provider of %s has reconciled it at %s, though it is held: the provider does not heed %s, as old ones don't, or "+
		"somebody has taken that off meanwhile. See whether its external resource and its connection secret are as they should be, upgrade the provider, then "+
		"let it go: %s", group, c.Since.UTC().Format(time.RFC3339), xp.AnnotationPaused, releaseByForce(u))}, true
}

const causeUnheeded = "its provider does not heed that it is paused"
