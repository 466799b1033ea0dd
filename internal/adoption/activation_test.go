package adoption

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// An MR of an inactive kind waits for a user to activate the kind. Installing the provider, which
// is there, does not help.
func TestNextWaitsForActivation(t *testing.T) {
	const mrd = "buckets.cloud.example.org"
	const cure = "ManagedResourceDefinition " + mrd + ` is not active; activate it: add it to spec.activate of a ManagedResourceActivationPolicy, or run "kubectl patch ` +
		`managedresourcedefinition --type=merge -p '{"spec":{"state":"Active"}}' ` + mrd + `", which can't be undone`
	x := xptest.XR("x")
	created := func(ago time.Duration) xptest.Option {
		return xptest.Field(noon.Add(-ago).UTC().Format(time.RFC3339), "metadata", "creationTimestamp")
	}
	bucket := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.MR("b", append([]xptest.Option{xptest.ControlledBy(x), created(time.Minute)}, o...)...)
	}
	paused := held(xptest.XR("x", xptest.Refs(bucket())), xptest.SeenPaused())
	on := func(served bool, mrs ...*unstructured.Unstructured) *Snapshot {
		w := snapshot(append(mrs, paused, xptest.Revision(xptest.RevisionName, x))...)
		if !served {
			w.AddUnserved(schema.GroupKind{Group: "cloud.example.org", Kind: "Bucket"})
		}

		return w
	}
	observed := func(o ...xptest.Option) *unstructured.Unstructured {
		return heldFor(bucket(), Hold{Observes: true}, append(o, policies(`["Observe"]`))...)
	}
	const unseen = "Bucket b: its provider has not observed it yet [AwaitingProvider]"
	cases := map[string]struct {
		reason   string
		snapshot *Snapshot
		ref      xp.Ref
		active   bool
		want     string
		moving   bool
	}{
		"NotServed": {
			reason: "A restore left the MR out and must restore it again.", snapshot: on(false),
			want: "Bucket b: its kind is not served, because its " + cure + ". Then restore again [KindNotActive]",
		},
		"NotServedOtherwise": {
			reason: "The MR was not left out, so its provider is missing.", snapshot: on(false), active: true,
			want: "Bucket b: its kind is not served, so no restore can bring it yet. Install the provider or XRD of Bucket.cloud.example.org, then restore again [KindNotServed]",
		},
		"NotObserved": {
			reason: "The CRD comes from the backup, and no provider runs for it.", snapshot: on(true, bucket()), want: "Bucket b: its provider does not reconcile it, because its " + cure + " [KindNotActive]",
		},
		"NotObservedOtherwise": {reason: "The kind is active, so its provider is only late.", snapshot: on(true, bucket()), active: true, want: unseen, moving: true},
		"JustCreated":          {reason: "A provider needs a moment for a new MR.", snapshot: on(true, bucket(created(time.Second))), want: unseen, moving: true},
		"Alone": {
			reason: "An MR without an XR waits in the same way.", snapshot: snapshot(observed(xptest.Without("metadata", "ownerReferences"))), ref: xp.RefTo(bucket()),
			want: "Bucket b: its provider does not reconcile it, because its " + cure + " [KindNotActive]",
		},
		"ObservedFirst": {
			reason: "An observed MR of an XR waits in the same way.", snapshot: on(true, observed()),
			want: "Bucket b: its provider does not reconcile it, because its " + cure + " [KindNotActive]",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.snapshot.Definitions(func(gk schema.GroupKind) string {
				if tc.active || gk.String() != "Bucket.cloud.example.org" {
					return ""
				}

				return mrd
			})
			if tc.ref == (xp.Ref{}) {
				tc.ref = xp.RefTo(x)
			}
			plan := Next(tc.snapshot, tc.ref)
			if got := strings.Join(reason.Strings(plan.Waiting), "\n"); got != tc.want || plan.Moving != tc.moving || !plan.Failed.IsZero() {
				t.Errorf("%s\ngot %q, moving %v, failed %q\nwant %q, moving %v", tc.reason, got, plan.Moving, plan.Failed, tc.want, tc.moving)
			}
		})
	}
}
