package restoreitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Velero restores the status only of what the same restore created, and can be killed before it
// does.
func TestAdoptReturnsStatus(t *testing.T) {
	x := xptest.XR("x", xptest.Reconciled(), xptest.Field("10.0.0.1", "status", "address"))
	failing := xptest.MR("b", xptest.ControlledBy(x), xptest.Synced("False", "ReconcileError", "no credentials"), xptest.Field("i-1", "status", "atProvider", "id"))
	claim := xptest.Claim("c", xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Field("10.0.0.1", "status", "address"))
	status, _, _ := unstructured.NestedMap(failing.Object, "status")
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		live   *cluster
		want   map[string]map[string]any
	}{
		"XR": {
			reason: "An earlier restore created the XR with its status.", item: x, live: live(x),
			want: map[string]map[string]any{xp.RefTo(x).String(): {"address": "10.0.0.1"}},
		},
		"MR": {
			reason: "An earlier restore created the MR, and its provider cannot reconcile it.", item: failing, live: live(failing),
			want: map[string]map[string]any{xp.RefTo(failing).String(): status},
		},
		"PausedClaim": {
			reason: "An earlier restore created the claim, which its user had paused, and nobody else writes its status.", item: claim, live: live(claim),
			want: map[string]map[string]any{xp.RefTo(claim).String(): {"address": "10.0.0.1"}},
		},
		"New":    {reason: "Velero writes the status of an object that it creates.", item: x, live: live()},
		"Needed": {reason: "Crossplane writes this status again.", item: xptest.XR("x", xptest.Reconciled()), live: live(x)},
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

// Without the setting no status is requested, and a warning names what is missing.
func TestAdoptWithoutStatus(t *testing.T) {
	x := xptest.XR("x", xptest.Reconciled(), xptest.Field("10.0.0.1", "status", "address"), xptest.Field("big", "status", "size"))
	failing := xptest.MR("b", xptest.ControlledBy(x), xptest.Synced("False", "ReconcileError", "no credentials"), xptest.Field("i-1", "status", "atProvider", "id"))
	type want struct {
		Held, Asked bool
		Waits       []string
		// Names is what the log names as missing, "" if it names nothing.
		Names string
	}
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		status string
		want   want
	}{
		"XR":     {reason: "A function may read the status, so the plugin names the loss.", item: x, status: "none", want: want{Held: true, Names: "XOrder x comes back without status.address, status.size,"}},
		"MR":     {reason: "The plugin names the MR's loss, but does not hold it for that.", item: failing, status: "none", want: want{Names: "Bucket b comes back without status.atProvider, status.conditions,"}},
		"Plain":  {reason: "Crossplane writes this status again, so nothing is lost.", item: xptest.XR("x", xptest.Reconciled()), status: "none", want: want{Held: true}},
		"Needed": {reason: "By default the plugin restores a status that functions may read.", item: x, status: "needed", want: want{Held: true, Asked: true, Waits: []string{"address", "size"}}},
		"NeededOfMR": {
			reason: "By default the plugin restores the status of a failing MR too.", item: failing, status: "needed", want: want{Held: true, Asked: true, Waits: []string{"atProvider", "conditions"}},
		},
		"Unsafe": {
			reason: "The setting also drops an id that later backups could use.", status: "none", item: unnamed(xptest.Reconciled(), xptest.Field("i-1", "status", "atProvider", "id")), want: want{Held: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := live(heldWith(xptest.XR("x", xptest.Refs(failing))))
			c.config = map[string]string{"restore-status": tc.status}
			out := adopt(t, c, tc.item, restoreOf(nil))
			if out.err != nil {
				t.Fatal(out.err)
			}
			var got want
			for _, line := range out.logged {
				if at := strings.Index(line, tc.want.Names); tc.want.Names != "" && at >= 0 {
					got.Names = line[at : at+len(tc.want.Names)]
				} else if strings.Contains(line, "comes back without status") {
					t.Errorf("%s\nlogged %s", tc.reason, line)
				}
			}
			if out.object != nil {
				h, err := adoption.HoldOf(out.object)
				if err != nil {
					t.Fatal(err)
				}
				got.Asked = out.object.GetAnnotations()[xp.AnnotationRestoreStatus] == "true"
				if h != nil {
					got.Held, got.Waits = true, h.Status
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || len(c.returned) > 0 && tc.status == "none" {
				t.Errorf("%s\nreturned %v, -want, +got:\n%s", tc.reason, c.returned, diff)
			}
		})
	}
}
