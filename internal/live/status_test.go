package live

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestReturnStatus(t *testing.T) {
	ready := map[string]any{"type": "Ready", "status": "True"}
	status := map[string]any{"address": "10.0.0.1", "size": "big", "conditions": []any{ready, map[string]any{"type": "Synced", "status": "True"}}}
	held := func(of adoption.Hold, o ...xptest.Option) *unstructured.Unstructured {
		u := xptest.XR("x")
		if _, err := adoption.Put(u, of); err != nil {
			t.Fatal(err)
		}

		return xptest.With(u, o...)
	}
	both := adoption.Hold{Restore: "velero/monday", Status: []string{"address", "size"}}
	said, _, _ := unstructured.NestedSlice(xptest.XR("x", xptest.SeenPaused()).Object, "status", "conditions")
	cases := map[string]struct {
		reason string
		live   []*unstructured.Unstructured
		want   map[string]any
	}{
		"Lost": {
			reason: "The listed fields come back, and no others.", live: []*unstructured.Unstructured{held(both, xptest.SeenPaused())},
			want: map[string]any{"address": "10.0.0.1", "size": "big", "conditions": said},
		},
		"Part": {
			reason: "A field that is live stays as it is.", live: []*unstructured.Unstructured{held(both, xptest.Field("10.0.0.2", "status", "address"))},
			want: map[string]any{"address": "10.0.0.2", "size": "big"},
		},
		"Conditions": {
			reason: "The controller has reported the pause, and will not report more.",
			live:   []*unstructured.Unstructured{held(adoption.Hold{Restore: "velero/monday", Status: []string{"conditions"}}, xptest.SeenPaused())},
			want:   map[string]any{"conditions": append(slices.Clone(said), any(ready))},
		},
		"NotAsked": {reason: "The hold lists no status fields.", live: []*unstructured.Unstructured{held(adoption.Hold{Restore: "velero/monday"})}},
		"NotHeld":  {reason: "The controller of an object without a hold writes its status.", live: []*unstructured.Unstructured{xptest.XR("x")}},
		"LetGoOn":  {reason: "The controller of a held object that goes on writes its status.", live: []*unstructured.Unstructured{held(both, xptest.Without("metadata", "annotations", xp.AnnotationPaused))}},
		"PausedAgain": {
			reason: "A later pause of a user does not change that.", live: []*unstructured.Unstructured{xptest.With(held(both),
				xptest.Annotated(adoption.AnnotationHold, `{"restore":"velero/monday","status":["address","size"],"unpaused":"2026-01-02T12:00:00Z"}`))},
		},
		"Copy":       {reason: "A user decides about a copy.", live: []*unstructured.Unstructured{held(adoption.Hold{Clone: "XOrder y", Status: both.Status})}},
		"Unreadable": {reason: "A malformed mark lists no known fields.", live: []*unstructured.Unstructured{xptest.XR("x", xptest.Annotated(adoption.AnnotationHold, "?"))}},
		"Gone":       {reason: "The object was deleted meanwhile."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(tc.live...)
			s.failOn("patch", "xorders", 1, apierrors.NewConflict(schema.GroupResource{}, "x", nil))
			if err := s.cluster().ReturnStatus(t.Context(), adoption.Unverified, xp.RefTo(xptest.XR("x")), status); err != nil {
				t.Fatal(err)
			}
			if tc.live == nil {
				return
			}
			got, _, _ := unstructured.NestedMap(s.get(t, xorders, "", "x").Object, "status")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A status that a controller has written meanwhile stays.
func TestReturnStatusConflict(t *testing.T) {
	held := xptest.XR("x")
	if _, err := adoption.Put(held, adoption.Hold{Restore: "velero/monday", Status: []string{"address", "size"}}); err != nil {
		t.Fatal(err)
	}
	s := newServer(held)
	s.meanwhile("patch", func() {
		s.put(xorders, xptest.With(s.get(t, xorders, "", "x"), xptest.Field("10.0.0.2", "status", "address")))
	})
	if err := s.cluster().ReturnStatus(t.Context(), adoption.Unverified, xp.RefTo(held), map[string]any{"address": "10.0.0.1", "size": "big"}); err != nil {
		t.Fatal(err)
	}
	got, _, _ := unstructured.NestedMap(s.get(t, xorders, "", "x").Object, "status")
	if diff := cmp.Diff(map[string]any{"address": "10.0.0.2", "size": "big"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// The objects of a stopped restore are found with one list of each kind, and repaired with one
// patch each.
func TestReturnManagers(t *testing.T) {
	const theirs, veleros = `{"manager":"kubectl","operation":"Update","fieldsV1":{"f:spec":{}}}`, `{"manager":"velero-server","time":"2026-01-02T12:00:00Z"}`
	managed := func(entries string) xptest.Option {
		return xptest.JSON(`{"metadata":{"managedFields":[` + entries + `]}}`)
	}
	stray := restored(xptest.XR("stray", managed(veleros)))
	whole := restored(xptest.XR("whole", managed(theirs)))
	s := newServer(stray, whole, xptest.XR("other", managed(veleros)))
	c := s.cluster()
	for _, name := range []string{"stray", "whole", "other", "gone"} {
		item := xptest.XR(name, managed(theirs))
		if err := c.ReturnManagers(t.Context(), item, xp.RefTo(item)); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]any{}
	for _, name := range []string{"stray", "whole", "other"} {
		for _, m := range s.get(t, xorders, "", name).GetManagedFields() {
			got[name] = m.Manager
		}
	}
	want := map[string]any{"stray": "kubectl", "whole": "kubectl", "other": "velero-server"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("managers: -want, +got:\n%s", diff)
	}
	requests := []int{len(s.requests("list")), len(s.requests("get")), len(s.requests("patch"))}
	if diff := cmp.Diff([]int{1, 1, 1}, requests); diff != "" {
		t.Errorf("lists, gets and patches: -want, +got:\n%s", diff)
	}
}
