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
	modern := xptest.XRV2("m")
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
		"XR":     {reason: "Without a user's consent the XR would adopt its resources.", item: x, want: byHand("XOrder.v1alpha1.example.org//x")},
		"Claim":  {reason: "Without a user's consent Crossplane would create an XR for the claim.", item: xptest.Claim("o"), want: byHand("OrderClaim.v1alpha1.example.org/team-a/o")},
		"MR":     {reason: "Its provider may observe the MR, which is how the plugin checks it.", item: xptest.MR("b")},
		"Unsafe": {reason: "A user still releases an MR whose external-name was unclear.", item: unnamed(), want: byHand(inBucket)},
		"Observing": {
			reason: "The provider observes it, and changes nothing before a user releases it.", item: xptest.MR("b"), config: map[string]string{"observe-first": "true"},
			want: want{Op: inBucket, Held: true, ByHand: true, Observes: true},
		},
		"Fresh":      {reason: "Without a user's consent its provider would create an external resource.", item: fresh, want: byHand(inBucket)},
		"Foreign":    {reason: "No controller in this cluster reconciles it.", item: xptest.Object("example.org/v1", "Thing", "team-a", "t")},
		"Quarantine": {reason: "A quarantine already needs consent, and one consent is enough.", item: x, config: map[string]string{"hold": "all"}, want: want{Op: "XOrder.v1alpha1.example.org//x", Held: true}},
		"Copy": {
			reason: "A copy stays held, so no user releases it.", item: modern, live: []*unstructured.Unstructured{modern}, want: want{Op: "Order.v1.example.org/copy/m", Held: true},
		},
		"NewCopy": {
			reason: "A released copy composes new resources.", item: modern, live: []*unstructured.Unstructured{modern}, config: map[string]string{"clone": "new"},
			want: byHand("Order.v1.example.org/copy/m"),
		},
		"Automatic": {
			reason: "The backup has a hold for release by hand, but the Restore's setting decides.", item: heldForRelease(x), config: map[string]string{"release": "automatic"},
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
				if got.ByHand && !strings.Contains(h.Reason, "release --restore velero/monday") {
					t.Errorf("the mark must name the next step; got %+v", h)
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
