package restoreitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Velero brings the status back of what the same restore has created only, and can have been killed before it did.
func TestAdoptReturnsStatus(t *testing.T) {
	x := xptest.XR("x", xptest.Reconciled(), xptest.Field("10.0.0.1", "status", "address"))
	failing := xptest.MR("b", xptest.ControlledBy(x), xptest.Synced("False", "ReconcileError", "no credentials"), xptest.Field("i-1", "status", "atProvider", "id"))
	status, _, _ := unstructured.NestedMap(failing.Object, "status")
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		live   *cluster
		want   map[string]map[string]any
	}{
		"XR": {
			reason: "An earlier restore has created it.", item: x, live: live(x),
			want: map[string]map[string]any{xp.RefTo(x).String(): {"address": "10.0.0.1"}},
		},
		"MR": {
			reason: "So has it this one, which its provider could not reconcile.", item: failing, live: live(failing),
			want: map[string]map[string]any{xp.RefTo(failing).String(): status},
		},
		"New":    {reason: "Velero writes the status of what it creates.", item: x, live: live()},
		"Needed": {reason: "Crossplane writes it anew.", item: xptest.XR("x", xptest.Reconciled()), live: live(x)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if out := adopt(t, tc.live, tc.item, restoreOf(nil)); out.err != nil {
				t.Fatal(out.err)
			}
			if diff := cmp.Diff(tc.want, tc.live.returned); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
