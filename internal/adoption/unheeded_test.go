package adoption

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A provider with an old crossplane-runtime ignores the pause, and no hold works. Only the MR shows
// it.
func TestNextOfProvidersThatIgnoreThePause(t *testing.T) {
	const earlier, later = "2025-12-31T00:00:00Z", "2026-12-31T00:00:00Z"
	created := xptest.Field(restoredAt, "metadata", "creationTimestamp")
	synced := func(reason, since string) xptest.Option {
		return xptest.JSON(`{"status":{"conditions":[{"type":"Synced","status":"True","reason":"` + reason + `","lastTransitionTime":"` + since + `"}]}}`)
	}
	publishing := xptest.MR("b", xptest.PublishesTo("infra", "s"), created)
	secret := xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(publishing))
	const reconciled, creating = "the provider of cloud.example.org reconciled it at " + later, "the provider of cloud.example.org began to create an external " +
		"resource at " + later
	cases := map[string]struct {
		reason string
		mr     *unstructured.Unstructured
		others []*unstructured.Unstructured
		// failed, waits and warns are prefixes of the messages; "" for none.
		failed, waits, warns string
	}{
		"Heeds": {reason: "The provider reports the pause.", mr: awaiting(publishing, synced(xp.ReasonReconcilePaused, later)), others: []*unstructured.Unstructured{secret}},
		"AsBackedUp": {
			reason: "A status from the backup is older than the hold.", mr: awaiting(publishing, synced("ReconcileSuccess", earlier)),
			others: []*unstructured.Unstructured{secret},
		},
		"Reconciled": {
			reason: "The provider may have published before the Secret was back.", mr: awaiting(publishing, synced("ReconcileSuccess", later)),
			others: []*unstructured.Unstructured{secret}, warns: reconciled,
		},
		"ReconciledAtOnce": {
			reason: "The API server counts in seconds, and a provider can reconcile within one.", mr: awaiting(publishing, synced("ReconcileSuccess", restoredAt)),
			others: []*unstructured.Unstructured{secret}, warns: "the provider of cloud.example.org reconciled it at " + restoredAt,
		},
		"ReconciledInTwoSteps": {
			reason: "If the mark is removed after the pause, the first step already carries the warning.", warns: reconciled, others: []*unstructured.Unstructured{secret},
			mr: awaiting(publishing, synced("ReconcileSuccess", later), xptest.JSON(`{"metadata":{"managedFields":[{"manager":"velero-server","operation":"Update",`+
				`"apiVersion":"cloud.example.org/v1alpha1","time":"`+later+`","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]}}`)),
		},
		"CreatingAtOnce": {
			reason: "A provider can create within the same second too.", failed: "the provider of cloud.example.org began to create an external resource at " + restoredAt,
			mr: heldFor(unnamed(created), Hold{Restore: restoreName, Since: restoredAt, Identity: xp.Unknown}, xptest.Annotated(xp.AnnotationCreatePending, restoredAt)),
		},
		"ReconciledUnnamed": {
			reason: "The MR was to create nothing before the user's check.", waits: reconciled,
			mr: heldFor(unnamed(created), Hold{Restore: restoreName, Since: restoredAt, Identity: xp.Unknown}, synced("ReconcileSuccess", later)),
		},
		"ReconciledObserving": {
			reason: "The provider was to observe the MR only after the unpause.", waits: reconciled,
			mr: heldFor(xptest.MR("b", created), Hold{Restore: restoreName, Since: restoredAt, Observes: true}, synced("ReconcileSuccess", later)),
		},
		"Creating": {
			reason: "The provider may have created a second external resource.", failed: creating,
			mr: heldFor(unnamed(created), Hold{Restore: restoreName, Since: restoredAt, Identity: xp.Unknown}, xptest.Annotated(xp.AnnotationCreatePending, later)),
		},
		"Created": {
			reason: "The provider has created an external resource.", mr: awaiting(publishing, xptest.Annotated(xp.AnnotationCreateSucceeded, later)), others: []*unstructured.Unstructured{secret},
			failed: creating,
		},
		"CreatedBefore": {
			reason: "The annotation comes from the backup.", mr: awaiting(publishing, xptest.Annotated(xp.AnnotationCreateSucceeded, earlier)),
			others: []*unstructured.Unstructured{secret},
		},
		"LetGo": {
			reason: "A user has released the MR already.", mr: awaiting(publishing, synced("ReconcileSuccess", later), unpaused()), others: []*unstructured.Unstructured{secret},
		},
		"OwnPause": {
			reason: "The user may add and remove their own pause.", others: []*unstructured.Unstructured{secret},
			mr: awaiting(xptest.With(publishing, xptest.Annotated(xp.AnnotationPaused, "true")), synced("ReconcileSuccess", later)),
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
