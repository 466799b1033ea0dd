package hold

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Reported is what a provider had noted on an MR before its hold, in RFC 3339. What differs later
// was noted since. Whether a note is older than the hold would be no proof of that: the provider,
// this plugin and the backed-up cluster each have a clock of their own.
type Reported struct {
	CreatePending   string `json:"createPending,omitempty"`
	CreateSucceeded string `json:"createSucceeded,omitempty"`
	// Synced is the last transition of that condition.
	Synced string `json:"synced,omitempty"`
}

// ReportedOf returns what the provider has noted on u; nil if u is no MR.
func ReportedOf(u *unstructured.Unstructured) *Reported {
	if !xp.IsManaged(u) {
		return nil
	}
	r := &Reported{CreatePending: xp.Annotation(u, xp.AnnotationCreatePending), CreateSucceeded: xp.Annotation(u, xp.AnnotationCreateSucceeded)}
	if c, ok := xp.ConditionOf(u, xp.ConditionSynced); ok && !c.Since.IsZero() {
		r.Synced = c.Since.UTC().Format(time.RFC3339)
	}

	return r
}

// Created returns when the provider of u created an external resource, or was about to, by its
// clock; created is false if it has noted none since.
func (r Reported) Created(u *unstructured.Unstructured) (when time.Time, created bool) {
	now := ReportedOf(u)
	if now == nil {
		return time.Time{}, false
	}
	// The note of a create that has ended is the later one.
	when = cmp.Or(parseChanged(now.CreateSucceeded, r.CreateSucceeded), parseChanged(now.CreatePending, r.CreatePending))

	return when, !when.IsZero()
}

// Reconciled returns when the Synced condition of u has changed since, by the provider's clock; ok
// is false if it has not, or only to say that u is paused.
func (r Reported) Reconciled(u *unstructured.Unstructured) (when time.Time, ok bool) {
	c, found := xp.ConditionOf(u, xp.ConditionSynced)

	return c.Since, found && c.Reason != xp.ReasonReconcilePaused && !c.Since.Equal(xp.ParseTime(r.Synced))
}

// parseChanged returns the time of a note, or zero if it is as it was.
func parseChanged(now, before string) time.Time {
	if now == before {
		return time.Time{}
	}

	return xp.ParseTime(now)
}
