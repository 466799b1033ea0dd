package adopter

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

func TestTakeOver(t *testing.T) {
	mr := xptest.MR("b")
	backup := xptest.XR("x", xptest.Refs(mr))
	fresh := xptest.XR("x", xptest.Without("spec", "resourceRefs"))
	anew := []xptest.Option{xptest.SeenPaused(), xptest.Refs(xptest.MR("anew"))}
	type args struct {
		reason string
		live   *unstructured.Unstructured
		// meanwhile are Crossplane's changes until the object is read again.
		meanwhile []xptest.Option
		// waited is for how long other XRs of the kind did not answer.
		waited time.Duration
		// taken is set if the object is taken over and held.
		taken bool
	}
	xptest.Each(t, map[string]args{
		"Seen":                  {reason: "Crossplane has seen the pause and writes nothing more.", live: fresh, meanwhile: []xptest.Option{xptest.SeenPaused()}, taken: true},
		"Overtaken":             {reason: "Crossplane was in the middle of composing and keeps the XR.", live: fresh, meanwhile: anew},
		"OvertakenAfterSlow":    {reason: "That Crossplane was slow with another XR does not matter.", live: fresh, waited: 2 * pauseTimeout, meanwhile: anew},
		"OvertakenAfterSilence": {reason: "Crossplane is up again.", live: fresh, waited: silenceLimit, meanwhile: anew},
		"Silent":                {reason: "Crossplane is not running, so the polls check whether it has seen the pause.", live: fresh, taken: true},
		"Composed":              {reason: "The XR lists its composed resources.", live: backup},
		"Gone":                  {reason: "There is no XR to take over."},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewServer()
		if tc.live != nil {
			s = apiserver.NewServer(tc.live)
		}
		s.Before("get", 2, func() {
			if tc.meanwhile != nil {
				s.Put(apiserver.XOrders, xptest.With(s.Get(t, apiserver.XOrders, "", "x"), tc.meanwhile...))
			}
		})
		c := NewTarget(clusterOf(s))
		c.silence[backup.GroupVersionKind().GroupKind()] = tc.waited
		u, err := c.TakeOver(t.Context(), hold.Unverified, backup, xp.RefTo(backup), hold.Hold{Restore: "velero/monday"}, nil)
		if err != nil || (u != nil) != tc.taken {
			t.Fatalf("%s\ngot %v, %v", tc.reason, u, err)
		}
		if tc.live == nil {
			return
		}
		if now := s.Get(t, apiserver.XOrders, "", "x"); xp.HasAnnotation(now, hold.Annotation) != tc.taken || xp.IsPaused(now) != tc.taken {
			t.Errorf("%s\ngot %v", tc.reason, now.GetAnnotations())
		}
	})
}

// While Crossplane is not running, the waits for a kind end at the limit.
func TestTakeOverSilent(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		s := apiserver.NewServer()
		c := NewTarget(clusterOf(s))
		other := schema.GroupKind{Group: "example.org", Kind: "XOther"}
		kind := xptest.XR("a").GroupVersionKind().GroupKind()
		c.silence[other] = pauseTimeout
		var waits []time.Duration
		for n := range 5 {
			backup := xptest.XR(fmt.Sprint("x", n), xptest.Refs(xptest.MR("b")))
			s.Put(apiserver.XOrders, xptest.With(backup, xptest.Without("spec", "resourceRefs")))
			began := time.Now()
			if u, err := c.TakeOver(t.Context(), hold.Unverified, backup, xp.RefTo(backup), hold.Hold{Restore: "velero/monday"}, nil); err != nil || u == nil {
				t.Fatalf("got %v, %v", u, err)
			}
			waits = append(waits, time.Since(began).Round(time.Second))
		}
		if diff := cmp.Diff([]time.Duration{pauseTimeout, pauseTimeout, pauseTimeout, 0, 0}, waits); diff != "" || c.silence[kind] < silenceLimit || c.silence[other] != pauseTimeout {
			t.Errorf("each kind has its own limit; got %v; -want, +waited:\n%s", c.silence, diff)
		}
	})
}

func TestReturnStatus(t *testing.T) {
	ready := map[string]any{"type": "Ready", "status": "True"}
	status := map[string]any{"address": "10.0.0.1", "size": "big", "conditions": []any{ready, map[string]any{"type": "Synced", "status": "True"}}}
	held := func(of hold.Hold, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.With(apiserver.Held(xptest.XR("x"), of), o...)
	}
	both := hold.Hold{Status: []string{"address", "size"}}
	said, _, _ := unstructured.NestedSlice(xptest.XR("x", xptest.SeenPaused()).Object, "status", "conditions")
	address := xptest.Field("10.0.0.2", "status", "address")
	type args struct {
		reason string
		live   *unstructured.Unstructured
		want   map[string]any
		// meanwhile is what the controller changes before the first patch.
		meanwhile xptest.Option
	}
	xptest.Each(t, map[string]args{
		"Lost": {
			reason: "The listed fields come back, and no others.", live: held(both, xptest.SeenPaused()),
			want: map[string]any{"address": "10.0.0.1", "size": "big", "conditions": said},
		},
		"Part":  {reason: "A field that is live stays as it is.", live: held(both, address), want: map[string]any{"address": "10.0.0.2", "size": "big"}},
		"Races": {reason: "A status that a controller has written meanwhile stays.", live: held(both), meanwhile: address, want: map[string]any{"address": "10.0.0.2", "size": "big"}},
		"Conditions": {
			reason: "The controller has reported the pause, and will not report more.", live: held(hold.Hold{Status: []string{"conditions"}}, xptest.SeenPaused()),
			want: map[string]any{"conditions": append(slices.Clone(said), any(ready))},
		},
		"NotAsked": {reason: "The hold lists no status fields.", live: held(hold.Hold{})},
		"NotHeld":  {reason: "The controller of an object without a hold writes its status.", live: xptest.XR("x")},
		"LetGoOn":  {reason: "The controller of a held object that goes on writes its status.", live: held(both, xptest.Without("metadata", "annotations", xp.AnnotationPaused))},
		"PausedAgain": {
			reason: "A later pause of a user does not change that.", live: held(both,
				xptest.Annotated(hold.Annotation, `{"restore":"velero/monday","status":["address","size"],"unpaused":"2026-01-02T12:00:00Z"}`)),
		},
		"Copy":       {reason: "A user decides about a copy.", live: held(hold.Hold{Clone: "XOrder y", Status: both.Status})},
		"Unreadable": {reason: "A malformed mark lists no known fields.", live: xptest.XR("x", xptest.Annotated(hold.Annotation, "?"))},
		"Gone":       {reason: "The object was deleted meanwhile."},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewServer()
		if tc.live != nil {
			s = apiserver.NewServer(tc.live)
		}
		if tc.meanwhile != nil {
			s.Before("patch", 1, func() { s.Put(apiserver.XOrders, xptest.With(s.Get(t, apiserver.XOrders, "", "x"), tc.meanwhile)) })
		}
		xptest.Must(t, NewTarget(clusterOf(s)).ReturnStatus(t.Context(), hold.Unverified, xp.RefTo(xptest.XR("x")), status))
		if tc.live == nil {
			return
		}
		got, _, _ := unstructured.NestedMap(s.Get(t, apiserver.XOrders, "", "x").Object, "status")
		xptest.Same(t, tc.want, got, tc.reason)
	})
}

// The objects of a stopped restore are found with one list of each kind, and repaired with one
// patch each.
func TestReturnManagers(t *testing.T) {
	const theirs, veleros = `{"manager":"kubectl","operation":"Update","fieldsV1":{"f:spec":{}}}`, `{"manager":"velero-server","time":"2026-01-02T12:00:00Z"}`
	managed := func(entries string) xptest.Option {
		return xptest.JSON(`{"metadata":{"managedFields":[` + entries + `]}}`)
	}
	stray := apiserver.Restored(xptest.XR("stray", managed(veleros)))
	whole := apiserver.Restored(xptest.XR("whole", managed(theirs)))
	s := apiserver.NewServer(stray, whole, xptest.XR("other", managed(veleros)))
	c := NewTarget(clusterOf(s))
	for _, name := range []string{"stray", "whole", "other", "gone"} {
		item := xptest.XR(name, managed(theirs))
		xptest.Must(t, c.ReturnManagers(t.Context(), item, xp.RefTo(item)))
	}
	got := map[string]any{}
	for _, name := range []string{"stray", "whole", "other"} {
		for _, m := range s.Get(t, apiserver.XOrders, "", name).GetManagedFields() {
			got[name] = m.Manager
		}
	}
	want := map[string]any{"stray": "kubectl", "whole": "kubectl", "other": "velero-server"}
	xptest.Same(t, want, got, "only strays get the managers of the backup")
	requests := []int{len(s.Requests("list")), len(s.Requests("get")), len(s.Requests("patch"))}
	xptest.Same(t, []int{1, 1, 1}, requests, "lists, gets and patches")
}
