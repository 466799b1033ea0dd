package adoption

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A provider with an old crossplane-runtime ignores the pause, and no hold works. Only the MR shows
// it, whatever clocks the backed-up cluster and the provider have.
func TestNextOfProvidersThatIgnoreThePause(t *testing.T) {
	for clock, noted := range map[string]string{"InStep": restoredAt, "Ahead": "2026-01-02T03:09:05Z", "Behind": "2026-01-02T02:59:05Z"} {
		t.Run(clock, func(t *testing.T) { testIgnoredPause(t, noted) })
	}
}

// testIgnoredPause tests MRs with notes of a provider from the given time.
func testIgnoredPause(t *testing.T, noted string) {
	t.Helper()
	created := xptest.Field(restoredAt, "metadata", "creationTimestamp")
	synced := func(reason, since string) xptest.Option {
		return xptest.JSON(`{"status":{"conditions":[{"type":"Synced","status":"True","reason":"` + reason + `","lastTransitionTime":"` + since + `"}]}}`)
	}
	publishing := xptest.MR("b", xptest.PublishesTo("infra", "s"), created)
	backedUp := func(o ...xptest.Option) *unstructured.Unstructured { return awaiting(xptest.With(publishing, o...)) }
	of := func(h Hold) Hold { h.Restore, h.Since = restoreName, restoredAt; return h }
	secret := xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(publishing))
	reconciled := "the provider of cloud.example.org reconciled it at " + noted
	creating := "the provider of cloud.example.org began to create an external resource at " + noted
	const before = "2025-12-31T00:00:00Z"
	cases := map[string]struct {
		reason string
		mr     *unstructured.Unstructured
		others []*unstructured.Unstructured
		// failed, waits and warns are prefixes of the messages; "" for none.
		failed, waits, warns string
	}{
		"Heeds": {reason: "The provider reports the pause.", mr: awaiting(publishing, synced(xp.ReasonReconcilePaused, noted)), others: []*unstructured.Unstructured{secret}},
		"AsBackedUp": {
			reason: "The status is from the backup.", mr: backedUp(synced("ReconcileSuccess", noted)), others: []*unstructured.Unstructured{secret},
		},
		"StatusNotRestored": {
			reason: "The status of the backup is not restored.", others: []*unstructured.Unstructured{secret},
			mr: xptest.With(backedUp(synced("ReconcileSuccess", noted)), xptest.Without("status")),
		},
		"Reconciled": {
			reason: "The provider may have published before the Secret was back.", mr: awaiting(publishing, synced("ReconcileSuccess", noted)),
			others: []*unstructured.Unstructured{secret}, warns: reconciled,
		},
		"ReconciledAgain": {
			reason: "The status of the backup was replaced.", mr: xptest.With(backedUp(synced("ReconcileError", before)), synced("ReconcileSuccess", noted)),
			others: []*unstructured.Unstructured{secret}, warns: reconciled,
		},
		"ReconciledInTwoSteps": {
			reason: "If the mark is removed after the pause, the first step already carries the warning.", warns: reconciled, others: []*unstructured.Unstructured{secret},
			mr: awaiting(publishing, synced("ReconcileSuccess", noted), xptest.JSON(`{"metadata":{"managedFields":[{"manager":"velero-server","operation":"Update",`+
				`"apiVersion":"cloud.example.org/v1alpha1","time":"2026-12-31T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]}}`)),
		},
		"ReconciledUnnamed": {
			reason: "The MR was to create nothing before the user's check.", waits: reconciled,
			mr: heldFor(unnamed(created), of(Hold{Identity: xp.Unknown}), synced("ReconcileSuccess", noted)),
		},
		"ReconciledObserving": {
			reason: "The provider was to observe the MR only after the unpause.", waits: reconciled,
			mr: heldFor(xptest.MR("b", created), of(Hold{Observes: true}), synced("ReconcileSuccess", noted)),
		},
		"Creating": {
			reason: "The provider may have created a second external resource.", failed: creating,
			mr: heldFor(unnamed(created), of(Hold{Identity: xp.Unknown}), xptest.Annotated(xp.AnnotationCreatePending, noted)),
		},
		"Created": {
			reason: "The provider has created an external resource.", failed: creating, others: []*unstructured.Unstructured{secret},
			mr: awaiting(publishing, xptest.Annotated(xp.AnnotationCreatePending, before), xptest.Annotated(xp.AnnotationCreateSucceeded, noted)),
		},
		"CreatedAgain": {
			reason: "The provider had created the external resource before the backup, and creates another.", failed: creating, others: []*unstructured.Unstructured{secret},
			mr: xptest.With(backedUp(xptest.Annotated(xp.AnnotationCreateSucceeded, before)), xptest.Annotated(xp.AnnotationCreateSucceeded, noted)),
		},
		"CreatedBefore": {
			reason: "The annotation comes from the backup.", mr: backedUp(xptest.Annotated(xp.AnnotationCreateSucceeded, noted)),
			others: []*unstructured.Unstructured{secret},
		},
		"Corrected": {
			reason: "A user has found that nothing was being created.", others: []*unstructured.Unstructured{secret},
			mr: xptest.With(backedUp(xptest.Annotated(xp.AnnotationCreatePending, noted)), xptest.Without("metadata", "annotations", xp.AnnotationCreatePending)),
		},
		"OfEarlierVersion": {
			reason: "The mark does not have what the provider had noted.", others: []*unstructured.Unstructured{secret},
			mr: withMark(publishing, Hold{Restore: restoreName, Since: restoredAt, Secret: true}, xptest.Annotated(xp.AnnotationCreateSucceeded, noted)),
		},
		"LetGo": {
			reason: "A user has released the MR already.", mr: awaiting(publishing, synced("ReconcileSuccess", noted), unpaused()), others: []*unstructured.Unstructured{secret},
		},
		"OwnPause": {
			reason: "The user may add and remove their own pause.", others: []*unstructured.Unstructured{secret},
			mr: awaiting(xptest.With(publishing, xptest.Annotated(xp.AnnotationPaused, "true")), synced("ReconcileSuccess", noted)),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Next(snapshot(append(tc.others, tc.mr)...), xp.RefTo(tc.mr))
			waits := ""
			if len(p.Waiting) > 0 {
				waits = p.Waiting[0].String()
			}
			for _, said := range []struct{ got, begin, want string }{
				{p.Failed.String(), "Bucket b stays held: ", tc.failed}, {waits, "Bucket b: ", tc.waits}, {p.Warning.String(), "", tc.warns},
			} {
				if said.want == "" && said.got != "" || said.want != "" && !strings.HasPrefix(said.got, said.begin+said.want) {
					t.Errorf("%s\ngot %q, want %q", tc.reason, said.got, said.want)
				}
			}
			if lifts := p.Patch != nil; lifts != (tc.failed == "" && tc.waits == "") {
				t.Errorf("%s\nhold lifted: %v", tc.reason, lifts)
			}
			if tc.failed == "" {
				return
			}
			x := held(xptest.XR("x", xptest.Refs(tc.mr)), xptest.SeenPaused())
			of := Next(snapshot(x, xptest.With(tc.mr, xptest.ControlledBy(x)), xptest.Revision(xptest.RevisionName, x)), xp.RefTo(x))
			if !strings.HasPrefix(of.Failed.String(), "XOrder x stays held: Bucket b: "+tc.failed) || of.Patch != nil {
				t.Errorf("%s\nthe XR must stay held too: got %+v", tc.reason, of)
			}
		})
	}
}

// withMark returns a held MR whose mark has no more than the given Hold.
func withMark(u *unstructured.Unstructured, h Hold, o ...xptest.Option) *unstructured.Unstructured {
	u = u.DeepCopy()
	if _, err := Put(u, h); err != nil {
		panic(err) // The test is wrong.
	}

	return xptest.With(u, o...)
}
