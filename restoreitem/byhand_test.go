package restoreitem

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A user releases what is held. Unlike in a quarantine, safe MRs are not held.
func TestAdoptByHand(t *testing.T) {
	x := xptest.XR("x")
	composed := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	x = xptest.With(x, xptest.Refs(composed))
	fresh := xptest.Object(xptest.ManagedVersion, xptest.ManagedKind, "", "b", xptest.Field(map[string]any{"region": "eu"}, "spec", "forProvider"))
	modern := xptest.ModernXR("m")
	const inBucket = "Bucket.v1alpha1.cloud.example.org//b"
	type want struct {
		Op                     string
		Held, ByHand, Observes bool
	}
	byHand := func(op string) want { return want{Op: op, Held: true, ByHand: true} }
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		live   []*unstructured.Unstructured
		config map[string]string
		want   want
	}{
		"XR":     {reason: "It would be adopted.", item: x, want: byHand("XOrder.v1alpha1.example.org//x")},
		"Claim":  {reason: "Its XR would be made.", item: xptest.Claim("o"), want: byHand("OrderClaim.v1alpha1.example.org/team-a/o")},
		"MR":     {reason: "Its provider may look at it: that is how it is checked.", item: xptest.MR("b")},
		"Unsafe": {reason: "When somebody has said what it is, it waits for a person, too.", item: unnamed(), want: byHand(inBucket)},
		"Observing": {
			reason: "It looks, and changes nothing before a person lets it.", item: xptest.MR("b"), config: map[string]string{"observe-first": "true"},
			want: want{Op: inBucket, Held: true, ByHand: true, Observes: true},
		},
		"Fresh":      {reason: "Its provider would make it.", item: fresh, want: byHand(inBucket)},
		"Foreign":    {reason: "It is nobody's here.", item: xptest.Object("example.org/v1", "Thing", "team-a", "t")},
		"Quarantine": {reason: "One consent is enough.", item: x, config: map[string]string{"hold": "all"}, want: want{Op: "XOrder.v1alpha1.example.org//x", Held: true}},
		"Copy": {
			reason: "Nobody releases a copy.", item: modern, live: []*unstructured.Unstructured{modern}, want: want{Op: "Order.v1.example.org/copy/m", Held: true},
		},
		"NewCopy": {
			reason: "It would compose anew.", item: modern, live: []*unstructured.Unstructured{modern}, config: map[string]string{"clone": "new"},
			want: byHand("Order.v1.example.org/copy/m"),
		},
		"Automatic": {
			reason: "A backup that was taken meanwhile has no say in it.", item: heldForRelease(x), config: map[string]string{"release": "automatic"},
			want: want{Op: "XOrder.v1alpha1.example.org//x", Held: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := live(tc.live...)
			c.config = map[string]string{"release": "by-hand"}
			maps.Copy(c.config, tc.config)
			c.reconciled = []string{"Bucket"}
			var mapping map[string]string
			if tc.live != nil {
				mapping = toCopy()
			}
			out := adopt(t, c, tc.item, restoreOf(mapping))
			if out.err != nil {
				t.Fatal(out.err)
			}
			got := want{Op: out.OperationID}
			if out.object != nil {
				h, err := adoption.HoldOf(out.object)
				if err != nil {
					t.Fatal(err)
				}
				if h != nil {
					got.Held, got.ByHand, got.Observes = xp.IsPaused(out.object), h.ByHand, h.Observes
				}
				if got.ByHand && !strings.HasSuffix(h.Reason, "release --restore velero/monday") {
					t.Errorf("the mark must have the next step; got %+v", h)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// heldForRelease returns an object as it is backed up while it waits for a user.
func heldForRelease(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	if _, err := adoption.Put(u, adoption.Hold{ByHand: true}); err != nil {
		panic(err) // The test is wrong.
	}

	return u
}
