package adoption

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestForce(t *testing.T) {
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	composition := xptest.Composition(xptest.CompositionName, x)
	pinned := xptest.Revision(xptest.RevisionName, x, xptest.ControlledBy(composition), xptest.Field(int64(1), "spec", "revision"))
	newer := xptest.Revision("newer", x, xptest.ControlledBy(composition), xptest.Field(int64(2), "spec", "revision"))
	loose := xptest.Revision("loose", x, xptest.Field(int64(9), "spec", "revision"))
	xr := func(o ...xptest.Option) *unstructured.Unstructured {
		return held(xptest.XR("x", append([]xptest.Option{xptest.Refs(bucket)}, o...)...), xptest.SeenPaused())
	}
	nameless := xptest.MR("b", xptest.ControlledBy(x), xptest.Without("metadata", "annotations", xp.AnnotationExternalName))
	claim := xptest.Claim("o", xptest.OfXR(x))
	cases := map[string]struct {
		reason   string
		snapshot *Snapshot
		of       *unstructured.Unstructured
		// want are prefixes of the risks.
		want    []string
		refused string
	}{
		"Nothing": {reason: "All composed resources exist.", snapshot: snapshot(xr(), bucket, pinned), of: x},
		"Missing": {
			reason: "Crossplane creates the missing resource again, with a second external resource.", snapshot: snapshot(xr(), pinned), of: x,
			want: []string{"Bucket b is missing: Crossplane makes it anew"},
		},
		"Unserved": {
			reason: "Crossplane can't create the resource while its kind is not served.", of: x, want: []string{"Bucket b is missing and its kind is not served"},
			snapshot: func() *Snapshot {
				w := snapshot(xr(), pinned)
				w.AddUnserved(schema.GroupKind{Group: "cloud.example.org", Kind: "Bucket"})

				return w
			}(),
		},
		"OffTheList": {reason: "A user removed the reference, so the resource need not exist.", snapshot: snapshot(xptest.With(xr(), xptest.Refs()), pinned), of: x},
		"Unlisted": {
			reason: "Crossplane creates a second resource for one that the XR does not list.", snapshot: snapshot(xptest.With(xr(), xptest.Refs()), bucket, pinned), of: x,
			want: []string{"Bucket b is not in the resourceRefs"},
		},
		"OfAnother": {
			reason: "Crossplane treats the resource of another controller as missing.", snapshot: snapshot(xr(), xptest.MR("b", xptest.ControlledBy(xptest.XR("y"))), pinned), of: x,
			want: []string{"Bucket b is controlled by XOrder y: Crossplane drops it from the resourceRefs"},
		},
		"Going": {
			reason: "The resource is about to be deleted.", snapshot: snapshot(xr(), xptest.With(bucket, xptest.Deleting()), pinned), of: x,
			want: []string{"Bucket b is being deleted"},
		},
		"FollowsAnother": {
			reason: "Another writer changed the Composition during the hold.", of: x,
			snapshot: snapshot(xptest.With(xr(), xptest.Field("other", "spec", "compositionRef", "name")), bucket, pinned),
			want:     []string{"XOrder x: another writer has changed its compositionRef from orders to other", "its Composition other has no revision here"},
		},
		"HeldBelow": {
			reason: "The MR keeps its own hold.", snapshot: snapshot(xr(), heldFor(nameless, Hold{Identity: xp.Unknown}), pinned), of: x,
			want: []string{"Bucket b " + RiskHeld},
		},
		"NotObserved": {
			reason: "The risks name everything else that the XR waited for.", snapshot: snapshot(xr(), xptest.With(bucket, xptest.Without("status")), pinned), of: x,
			want: []string{"this is not waited for any more: Bucket b: its provider has not observed it yet [AwaitingProvider]"},
		},
		"NewComposition": {
			reason: "A newer revision takes effect at once, and a revision without a Composition has no effect.", snapshot: snapshot(xr(), bucket, pinned, newer, loose), of: x,
			want: []string{"its update policy is Automatic: it follows CompositionRevision newer at once"},
		},
		"Manual": {reason: "An XR with policy Manual keeps its revision.", snapshot: snapshot(xr(xptest.Policy("Manual")), bucket, pinned, newer), of: x},
		"NoRevision": {
			reason: "Crossplane has no revision to follow.", snapshot: snapshot(xr(), bucket), of: x, want: []string{"its Composition orders has no revision here"},
		},
		"Deleted": {
			reason: "Only the hold keeps Crossplane from deleting the XR.", snapshot: snapshot(xptest.With(xr(), xptest.Deleting()), bucket, pinned), of: x,
			want: []string{"it is being deleted: Crossplane carries on with that, and deletes all that it composes: Bucket b"},
		},
		"OwnPause": {
			reason: "Nothing happens while the user's own pause stays.", snapshot: snapshot(xr(xptest.Annotated(xp.AnnotationPaused, "true")), pinned), of: x,
			want: []string{"it stays paused", "Bucket b is missing"},
		},
		"Nameless": {
			reason: "Without an external-name the external resource is unknown.", snapshot: snapshot(heldFor(nameless, Hold{Identity: xp.Unknown})), of: nameless,
			want: []string{"it has no external-name: its provider makes another external resource"},
		},
		"InFlight": {
			reason: "The external resource may exist.", of: nameless,
			snapshot: snapshot(heldFor(xptest.With(nameless, xptest.Annotated(xp.AnnotationCreatePending, "2026-01-02T03:04:05Z")), Hold{Identity: xp.CreatePending})),
			want:     []string{"it was being created when it was backed up"},
		},
		"Observes": {
			reason: "The provider has not yet observed the external resource.", snapshot: snapshot(heldFor(bucket, Hold{Observes: true})), of: bucket,
			want: []string{"its provider has not found its external resource yet", "this is not waited for any more: Bucket b: its provider has not reported yet that it is paused [AwaitingPauseReport]"},
		},
		"ClaimWithoutXR": {
			reason: "Crossplane creates another XR.", snapshot: snapshot(held(claim)), of: claim, want: []string{"XOrder x is missing: Crossplane makes another XR"},
		},
		"ClaimOfAnother": {
			reason: "Crossplane refuses an XR that does not name the claim.", snapshot: snapshot(held(claim), x), of: claim, want: []string{"XOrder x does not name it as its claim"},
		},
		"Claim": {reason: "The claim and its XR belong together.", snapshot: snapshot(held(claim), xptest.XR("x", xptest.ClaimedBy(claim))), of: claim},
		"Copy": {
			reason: "Two MRs would manage one external resource.", snapshot: snapshot(heldFor(bucket, Hold{Clone: "Bucket other"})), of: bucket,
			want: []string{"it is a copy of Bucket other: if that is alive, both manage the same external resources"},
		},
		"Unreadable": {
			reason: "The settings to return can't be read.", snapshot: snapshot(xptest.With(x, xptest.Annotated(AnnotationHold, "?"))), of: x,
			refused: "cannot read the annotation",
		},
		"Gone": {reason: "There is no hold to lift.", snapshot: snapshot(), of: x, refused: "XOrder x does not exist any more"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := AssessForce(tc.snapshot, xp.RefTo(tc.of))
			if len(f.Risks) != len(tc.want) {
				t.Fatalf("%s\nwant %q, got %q", tc.reason, tc.want, f.Risks)
			}
			for n, want := range tc.want {
				if !strings.HasPrefix(f.Risks[n], want) {
					t.Errorf("%s\nwant %q, got %q", tc.reason, want, f.Risks[n])
				}
			}
			if !strings.HasPrefix(f.Refused, tc.refused) || (f.Refused == "") != (tc.refused == "") || (f.Patch == nil) != (tc.refused != "") {
				t.Errorf("%s\nrefused: %q, patch %v", tc.reason, f.Refused, f.Patch)
			}
		})
	}
}

// Lifting by force gives an object's own settings back exactly.
func TestForceReturnsSettings(t *testing.T) {
	schedule := xptest.Object("ops.crossplane.io/v1alpha1", "CronOperation", "", "c", xptest.Field("* * * * *", "spec", "schedule"))
	for _, own := range []*unstructured.Unstructured{
		xptest.XR("x"), xptest.XR("x", xptest.Policy("Manual")), xptest.ModernXR("x", xptest.Policy("Automatic"), xptest.Annotated(xp.AnnotationPaused, "true")),
		xptest.Claim("o", xptest.Annotated(xp.AnnotationPaused, "false")), xptest.MR("b"), schedule,
		xptest.MR("b", xptest.Field([]any{"Observe", "Create"}, "spec", "managementPolicies")),
	} {
		h := Hold{}
		if xp.IsManaged(own) && !xp.IsComposite(own) {
			h.Observes = true
		}
		u := heldFor(own, h)
		f := AssessForce(snapshot(u), xp.RefTo(own))
		if diff := cmp.Diff(own, withoutNothing(xptest.Merge(u, f.Patch))); diff != "" {
			t.Errorf("%s: -own, +after:\n%s", xp.String(own), diff)
		}
		if again := AssessForce(snapshot(xptest.Merge(u, f.Patch)), xp.RefTo(own)); again.Patch != nil || again.Refused != "" {
			t.Errorf("%s: without a hold there is nothing to lift: %+v", xp.String(own), again)
		}
	}
}

// withoutNothing removes empty fields.
func withoutNothing(u *unstructured.Unstructured) *unstructured.Unstructured {
	xptest.Without("metadata", "resourceVersion")(u)
	if len(u.GetAnnotations()) == 0 {
		xptest.Without("metadata", "annotations")(u)
	}

	return u
}
