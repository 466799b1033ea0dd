package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestApplyChange(t *testing.T) {
	const entry = `{"metadata":{"managedFields":[{"manager":"velero-plugin-for-crossplane","operation":"Apply","apiVersion":"example.org/v1alpha1",` +
		`"fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{"f:velero.crossplane.x-k8s.io/hold":{}}},"f:spec":{"f:compositionUpdatePolicy":{}}}},` +
		`{"manager":"crossplane","operation":"Update","apiVersion":"example.org/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:compositionRef":{}}}}]}}`
	held := []xptest.Option{xptest.Policy("Manual"), xptest.Annotated(hold.Annotation, "h")}
	release := map[string]any{
		"metadata": map[string]any{"resourceVersion": "1", "annotations": map[string]any{hold.Annotation: nil}}, "spec": map[string]any{"compositionUpdatePolicy": "Automatic"},
	}
	of := xorders.GroupResource()
	type args struct {
		reason string
		entry  string
		// err is the API server's error, and policy is the default that it sets.
		err    error
		policy string
		want   string
		failed func(error) bool
	}
	each(t, map[string]args{
		"Applied":        {reason: "One request is enough.", entry: entry, policy: "Automatic", want: "apply"},
		"AnotherDefault": {reason: "The API server sets a default, and the patch corrects it.", entry: entry, policy: "Manual", want: "apply merge"},
		"Patched":        {reason: "The hold was not applied, so the release is a merge patch.", entry: "{}", want: "merge"},
		"NotOfItsSchema": {
			reason: "An object that breaks its schema takes a merge patch, and the plugin then gives up its fields.", entry: entry, err: apierrors.NewBadRequest("cannot be converted"),
			want: "apply merge merge", //nolint:dupword // They are two.
		},
		"Unsupported": {
			reason: "Not every API server supports server-side apply.", entry: entry, err: apierrors.NewGenericServerResponse(415, "patch", of, "x", "", 0, false),
			want: "apply merge merge", //nolint:dupword // They are two.
		},
		"Conflict": {
			reason: "Another writer has changed the object.", entry: entry, err: apierrors.NewConflict(of, "x", errDown), want: "apply", failed: apierrors.IsConflict,
		},
		"Gone": {reason: "The object is gone, and the release must not create it.", entry: entry, err: apierrors.NewNotFound(of, "x"), want: "apply", failed: apierrors.IsNotFound},
	}, func(t *testing.T, tc args) {
		u := xptest.XR("x", append(held, xptest.Version("1"), xptest.JSON(tc.entry))...)
		s := newServer(u)
		var carried []string
		s.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			patch := action.(clienttesting.PatchActionImpl) //nolint:forcetypeassert // The reactor gets only patches.
			if patch.GetPatchType() != types.ApplyPatchType {
				carried = append(carried, "merge")

				return false, nil, nil
			}
			carried = append(carried, "apply")
			var configuration unstructured.Unstructured
			if err := json.Unmarshal(patch.GetPatch(), &configuration.Object); err != nil {
				return true, nil, err
			}
			if _, ok := (xp.Instance{Unstructured: &configuration}).UpdatePolicy(); ok || configuration.GetUID() != u.GetUID() || configuration.GetResourceVersion() != "1" {
				t.Errorf("the applied configuration is %v", configuration.Object)
			}
			if tc.err != nil {
				return true, nil, tc.err
			}

			return true, s.put(xorders, xptest.XR("x", xptest.Policy(tc.policy))), nil
		})
		after, err := withoutPauses(s.cluster()).ApplyChange(t.Context(), hold.Change{Target: u, Patch: release, Defaults: [][]string{{"spec", "compositionUpdatePolicy"}}})
		if got := strings.Join(carried, " "); got != tc.want || (err != nil) != (tc.failed != nil) || err != nil && !tc.failed(err) {
			t.Fatalf("%s\npatches: %s, error %v", tc.reason, got, err)
		}
		if err != nil {
			return
		}
		if policy, _ := (xp.Instance{Unstructured: after}).UpdatePolicy(); policy != "Automatic" || xp.HasAnnotation(after, hold.Annotation) {
			t.Errorf("%s\ngot %v", tc.reason, after.Object)
		}
	})
}

func TestConvert(t *testing.T) {
	type args struct {
		reason string
		with   error
		want   bool
	}
	each(t, map[string]args{
		"Converted": {reason: "The API server accepted the create."},
		"Refused":   {reason: "The restore reports a refusal itself.", with: apierrors.NewForbidden(buckets.GroupResource(), "b", errors.New("a policy"))},
		"Exists":    {reason: "The object exists, so its conversion worked.", with: apierrors.NewAlreadyExists(buckets.GroupResource(), "b")},
		"Down":      {reason: "The webhook is down, so the restore would fail.", with: errConversion, want: true},
		"NoAnswer":  {reason: "A webhook that hangs counts as down.", with: context.DeadlineExceeded, want: true},
		"APIServer": {reason: "Another failure is not the webhook's.", with: apierrors.NewServiceUnavailable("etcd")},
	}, func(t *testing.T, tc args) {
		s := newServer()
		s.PrependReactor("create", "buckets", func(a clienttesting.Action) (bool, runtime.Object, error) {
			create := a.(clienttesting.CreateActionImpl)    //nolint:forcetypeassert // The reactor gets only creates.
			u := create.Object.(*unstructured.Unstructured) //nolint:forcetypeassert // The client sends only such objects.
			if u.GetUID() != "" || u.GetResourceVersion() != "" || u.Object["status"] != nil || len(u.GetOwnerReferences()) > 0 {
				t.Errorf("an API server refuses to create %v", u.Object)
			}

			return true, u, tc.with
		})
		mr := xptest.MR("b", xptest.Version("5"), xptest.ControlledBy(xptest.XR("x")), xptest.JSON(`{"status":{"a":"b"}}`))
		if err := s.cluster().Convert(t.Context(), mr, ""); (err != nil) != tc.want {
			t.Errorf("%s: got %v", tc.reason, err)
		}
	})
}

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
	each(t, map[string]args{
		"Seen":                  {reason: "Crossplane has seen the pause and writes nothing more.", live: fresh, meanwhile: []xptest.Option{xptest.SeenPaused()}, taken: true},
		"Overtaken":             {reason: "Crossplane was in the middle of composing and keeps the XR.", live: fresh, meanwhile: anew},
		"OvertakenAfterSlow":    {reason: "That Crossplane was slow with another XR does not matter.", live: fresh, waited: 2 * pauseTimeout, meanwhile: anew},
		"OvertakenAfterSilence": {reason: "Crossplane is up again.", live: fresh, waited: silenceLimit, meanwhile: anew},
		"Silent":                {reason: "Crossplane is not running, so the polls check whether it has seen the pause.", live: fresh, taken: true},
		"Composed":              {reason: "The XR lists its composed resources.", live: backup},
		"Gone":                  {reason: "There is no XR to take over."},
	}, func(t *testing.T, tc args) {
		s := newServer()
		if tc.live != nil {
			s = newServer(tc.live)
		}
		s.before("get", 2, func() {
			if tc.meanwhile != nil {
				s.put(xorders, xptest.With(s.get(t, xorders, "", "x"), tc.meanwhile...))
			}
		})
		c := s.cluster()
		c.silence[backup.GroupVersionKind().GroupKind()] = tc.waited
		u, err := c.TakeOver(t.Context(), hold.Unverified, backup, xp.RefTo(backup), hold.Hold{Restore: "velero/monday"}, nil)
		if err != nil || (u != nil) != tc.taken {
			t.Fatalf("%s\ngot %v, %v", tc.reason, u, err)
		}
		if tc.live == nil {
			return
		}
		if now := s.get(t, xorders, "", "x"); xp.HasAnnotation(now, hold.Annotation) != tc.taken || xp.IsPaused(now) != tc.taken {
			t.Errorf("%s\ngot %v", tc.reason, now.GetAnnotations())
		}
	})
}

// While Crossplane is not running, the waits for a kind end at the limit.
func TestTakeOverSilent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newServer()
		c := s.cluster()
		other := schema.GroupKind{Group: "example.org", Kind: "XOther"}
		kind := xptest.XR("a").GroupVersionKind().GroupKind()
		c.silence[other] = pauseTimeout
		var waits []time.Duration
		for n := range 5 {
			backup := xptest.XR(fmt.Sprint("x", n), xptest.Refs(xptest.MR("b")))
			s.put(xorders, xptest.With(backup, xptest.Without("spec", "resourceRefs")))
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
		return xptest.With(held(xptest.XR("x"), of), o...)
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
	each(t, map[string]args{
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
		s := newServer()
		if tc.live != nil {
			s = newServer(tc.live)
		}
		if tc.meanwhile != nil {
			s.before("patch", 1, func() { s.put(xorders, xptest.With(s.get(t, xorders, "", "x"), tc.meanwhile)) })
		}
		must(t, s.cluster().ReturnStatus(t.Context(), hold.Unverified, xp.RefTo(xptest.XR("x")), status))
		if tc.live == nil {
			return
		}
		got, _, _ := unstructured.NestedMap(s.get(t, xorders, "", "x").Object, "status")
		same(t, tc.want, got, tc.reason)
	})
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
		must(t, c.ReturnManagers(t.Context(), item, xp.RefTo(item)))
	}
	got := map[string]any{}
	for _, name := range []string{"stray", "whole", "other"} {
		for _, m := range s.get(t, xorders, "", name).GetManagedFields() {
			got[name] = m.Manager
		}
	}
	want := map[string]any{"stray": "kubectl", "whole": "kubectl", "other": "velero-server"}
	same(t, want, got, "only strays get the managers of the backup")
	requests := []int{len(s.requests("list")), len(s.requests("get")), len(s.requests("patch"))}
	same(t, []int{1, 1, 1}, requests, "lists, gets and patches")
}
