package adoption

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// copied returns u held as a copy of a live object.
func copied(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	if _, err := Put(u, Hold{Restore: restoreName, Since: restoredAt, Clone: "Bucket team-a/b", Reason: "it is a copy"}); err != nil {
		panic(err) // The test is wrong.
	}

	return u
}

// A copy stays held even if all its composed resources exist: both would manage the same external
// resources.
func TestNextLeavesCopiesHeld(t *testing.T) {
	x := xptest.XRV2("x")
	mr := xptest.NamespacedMR("b", xptest.ControlledBy(x))
	bucket := xptest.With(mr, xptest.Reconciled())
	xr := xptest.XRV2("x", xptest.Refs(bucket), xptest.SeenPaused())
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	revision := xptest.Revision(xptest.RevisionName, x)
	runPlans(t, map[string]planCase{
		"XR": {
			reason: "A copied XR stays held even if nothing is missing.", snapshot: snapshot(copied(xr), bucket, revision), ref: xp.RefTo(x),
			want: outcome{Failed: "Order team-a/x stays held: it is a copy"},
		},
		"Claim": {
			reason: "A copied claim stays held in any state of its XR.", snapshot: snapshot(copied(claim), xptest.XR("x", xptest.ClaimedBy(claim))), ref: xp.RefTo(claim),
			want: outcome{Failed: "OrderClaim team-a/o stays held: it is a copy"},
		},
		"Composed": {
			reason: "An XR whose MR is held as a copy waits for nothing that could come.", snapshot: snapshot(held(xr, xptest.SeenPaused()), copied(mr), revision),
			ref:  xp.RefTo(x),
			want: outcome{Failed: "Order team-a/x stays held: Bucket team-a/b: it is a copy", Total: 1},
		},
		"ComposedXR": {
			reason: "An XR with a nested copy waits for nothing that could come either.",
			snapshot: snapshot(held(xptest.XRV2("x", xptest.Refs(xptest.XRV2("child"))), xptest.SeenPaused()),
				copied(xptest.XRV2("child", xptest.ControlledBy(x))), revision),
			ref:  xp.RefTo(x),
			want: outcome{Failed: "Order team-a/x stays held: Order team-a/child: it is a copy", Total: 1},
		},
		"OtherHold": {
			reason:   "An MR with another reason for its hold is released, not treated as a copy.",
			snapshot: snapshot(held(xr, xptest.SeenPaused()), held(bucket), revision), ref: xp.RefTo(x),
			want: outcome{
				Total: 1, Moving: true, Also: []string{"Bucket team-a/b"}, Waiting: []string{"Bucket team-a/b: it gets its own settings back [Releasing]"},
			},
		},
	})
}

func TestPutOfACopy(t *testing.T) {
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   Hold
	}{
		"MR": {
			reason: "An MR has no revision to pin.", object: xptest.NamespacedMR("b"),
			want: Hold{Restore: restoreName, Since: restoredAt, Clone: "Bucket team-a/b", Reason: "it is a copy"},
		},
		"XR": {
			reason: "A copied XR is held as for adoption, which a user may choose later.", object: xptest.XRV2("x", xptest.Refs(xptest.NamespacedMR("b"))),
			want: Hold{
				Restore: restoreName, Since: restoredAt, Clone: "Bucket team-a/b", Reason: "it is a copy", Pinned: true, Refs: refs(xptest.NamespacedMR("b")),
			},
		},
		"Again": {
			reason: "A copy that is backed up and restored again keeps the user's own settings.",
			object: copied(xptest.NamespacedMR("b", xptest.Annotated(xp.AnnotationPaused, "false"))),
			want:   Hold{Restore: restoreName, Since: restoredAt, Clone: "Bucket team-a/b", Reason: "it is a copy", Paused: new("false")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := copied(tc.object)
			got, err := HoldOf(u)
			if diff := cmp.Diff(&tc.want, got, cmpopts.IgnoreFields(Hold{}, "Of", "Composition", "Revision")); err != nil || diff != "" || !xp.IsPaused(u) {
				t.Errorf("%s\npaused %v, error %v, -want, +got:\n%s", tc.reason, xp.IsPaused(u), err, diff)
			}
		})
	}

	// An original that is restored in place of its copy is not a copy.
	original := copied(xptest.XRV2("x"))
	if h, err := Put(original, Hold{Restore: restoreName, Since: restoredAt}); err != nil || h.Clone != "" || h.Reason != reasonRestored {
		t.Errorf("a new restore must replace the copy's hold; got %+v, %v", h, err)
	}
}
