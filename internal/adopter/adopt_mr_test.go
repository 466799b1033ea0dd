package adopter

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

// heldMR returns a server with a held MR and its XR. exists are the external resources that the
// provider finds, by external-name.
func heldMR(t *testing.T, of hold.Hold, exists map[string]bool, o ...xptest.Option) (s *apiserver.Server, xr, own *unstructured.Unstructured) {
	t.Helper()
	x := xptest.XR("x", xptest.Created(cameAt))
	own = xptest.MR("b", append([]xptest.Option{xptest.ControlledBy(x)}, o...)...)
	xr = xptest.With(x, xptest.Refs(own))
	s = apiserver.NewServer(apiserver.Held(xr, hold.Hold{Since: apiserver.StartAt, Quarantine: of.Quarantine, ByHand: of.ByHand}), apiserver.Held(own, of), apiserver.Restored(xptest.Revision(xptest.RevisionName, x)))
	simulateCrossplane(s)
	simulateProvider(t, s, exists)

	return s, xr, own
}

// One poll unpauses an MR that observes first, lets it be observed twice and returns its settings,
// and then adopts its XR.
func TestAdoptObservesFirst(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		s, xr, own := heldMR(t, hold.Hold{Observes: true}, map[string]bool{"b": true}, xptest.JSON(`{"spec":{"managementPolicies":["*"]}}`))
		a := newFastAdopter(s)
		a.limit = time.Minute
		done(t, adoptWith(t, a, hold.Unverified, xr))
		xptest.Same(t, []string{"buckets /b", "buckets /b", "buckets /b", "xorders /x", "xorders /x"}, s.Requests("patch"), "the MR is unpaused, checked once more and gets its settings back, then the XR is unpaused and released")
		checkOwn(t, own, s.Get(t, apiserver.Buckets, "", "b"))
	})
}

// An MR and its XR stay held until a user removes what could create a second external resource.
// Then both go on.
func TestAdoptCreatesNothing(t *testing.T) {
	unnamed := xptest.Without("metadata", "annotations", xp.AnnotationExternalName)
	pending := func(u *unstructured.Unstructured) {
		unnamed(u)
		xptest.Annotated(xp.AnnotationCreatePending, "2026-01-02T03:04:05Z")(u)
	}
	all := xptest.JSON(`{"spec":{"managementPolicies":["*"]}}`)
	type args struct {
		reason string
		hold   hold.Hold
		mr     xptest.Option
		// alone is set if the operation is that of the MR.
		alone bool
		want  string
		// fixes are what the user changes.
		fixes []xptest.Option
	}
	xptest.Each(t, map[string]args{
		"Gone": {
			reason: "The external resource is gone, and the user consents to another.", hold: hold.Hold{Observes: true}, mr: func(*unstructured.Unstructured) {},
			want: "external resource does not exist", fixes: []xptest.Option{all},
		},
		"Unnamed": {
			reason: "The user sets the external-name.", hold: hold.Hold{Identity: xp.Unknown}, mr: unnamed, want: xp.AnnotationExternalName,
			fixes: []xptest.Option{xptest.Annotated(xp.AnnotationExternalName, "vpc-1")},
		},
		"Alone": {
			reason: "An MR that no XR composes has its own operation.", hold: hold.Hold{Identity: xp.CreatePending}, mr: pending, alone: true, want: xp.AnnotationCreatePending,
			fixes: []xptest.Option{xptest.Annotated(xp.AnnotationExternalName, "vpc-1"), xptest.Without("metadata", "annotations", xp.AnnotationCreatePending)},
		},
	}, func(t *testing.T, tc args) {
		exists := map[string]bool{"vpc-1": true}
		s, of, own := heldMR(t, tc.hold, exists, tc.mr)
		if tc.alone {
			of = own
		}
		for range 2 {
			if p := adopt(t, s, of); p.Done || len(p.Waiting) != 1 || !strings.Contains(waiting(p), tc.want) {
				t.Fatalf("%s\ngot %+v", tc.reason, p)
			}
		}
		if steps := s.Steps(); len(steps) > 1 || len(steps) > 0 && !tc.hold.Observes {
			t.Fatalf("%s\nonly the MR may be unpaused to be observed; got %v", tc.reason, steps)
		}
		exists["b"] = true
		s.Put(apiserver.Buckets, xptest.With(s.Get(t, apiserver.Buckets, "", "b"), tc.fixes...))
		if p := adopt(t, s, of); !p.Done || hold.IsMarked(s.Get(t, apiserver.Buckets, "", "b")) {
			t.Errorf("%s\ngot %+v", tc.reason, p)
		}
	})
}

// An object in quarantine, or with a manual release, stays as it is. A notice reports once that it
// is ready to be released. After the user's consent it is adopted.
func TestAdoptAwaitsConsent(t *testing.T) {
	type args struct {
		hold hold.Hold
		ok   func(adoption.Plan) bool
		said string
	}
	xptest.Each(t, map[string]args{
		"Quarantine": {hold: hold.Hold{Quarantine: true}, ok: func(p adoption.Plan) bool { return !p.Quarantine.IsZero() }},
		"ByHand":     {hold: hold.Hold{ByHand: true}, ok: func(p adoption.Plan) bool { return p.Ready && !p.RestoredAt.IsZero() }, said: "Bucket b: it waits for nothing but a user"},
	}, func(t *testing.T, tc args) {
		s, xr, own := heldMR(t, tc.hold, map[string]bool{"b": true})
		for range 2 {
			if p := adopt(t, s, xr); p.Done || !tc.ok(p) {
				t.Fatalf("got %+v", p)
			}
		}
		u := s.Get(t, apiserver.XOrders, "", "x")
		if h, err := hold.Of(u); err != nil || h == nil || !xp.IsPaused(u) || !strings.Contains(h.Reason, tc.said) {
			t.Fatalf("the XR must be held and report that it is ready; got %+v, %v", h, err)
		}
		if patches := s.Requests("patch"); len(s.Steps()) > 0 || len(patches) > 1 || len(patches) > 0 && tc.said == "" {
			t.Fatalf("only the reason may be written; got %v", patches)
		}
		a := newFastAdopter(s)
		for range 2 { // The second consent has nothing to do, even for an object that has changed.
			for _, u := range []*unstructured.Unstructured{own, xr, xptest.MR("gone")} {
				xptest.Must(t, a.Consent(t.Context(), hold.Unverified, apiserver.Held(u, tc.hold)))
			}
		}
		done(t, adoptWith(t, a, hold.Unverified, xr))
		checkOwn(t, own, s.Get(t, apiserver.Buckets, "", "b"))
	})
}

// An MR waits for a Secret of the backup that is not restored yet: its provider would publish
// another. In the XR's operation it goes on before Crossplane reconciles the XR.
func TestAdoptHoldsAnMRWithoutItsSecret(t *testing.T) {
	for name, composed := range map[string]bool{"Alone": false, "Composed": true} {
		t.Run(name, func(t *testing.T) {
			xptest.Bubble(t, func(t *testing.T) {
				mark := hold.Hold{Reason: hold.ReasonSecret, Secret: true}
				s, of, own := heldMR(t, mark, map[string]bool{"b": true}, xptest.PublishesTo("infra", "s"), xptest.Annotated(xp.AnnotationPaused, "false"))
				want := []string{"secrets infra/s", "buckets /b", "xorders /x"}
				if !composed {
					_ = s.Tracker().Delete(apiserver.XOrders, "", "x")
					s.Put(apiserver.Buckets, apiserver.Held(xptest.With(own, xptest.Without("metadata", "ownerReferences")), mark))
					of, want = own, want[:2]
				}
				if p := adopt(t, s, of); p.Done || p.Patch != nil || !p.Blocked || len(s.Steps()) > 0 {
					t.Errorf("without its Secret: %+v", p)
				}
				s.Put(apiserver.Secrets, apiserver.Restored(xptest.Secret("s", xptest.In("infra"))))
				for range 2 {
					done(t, adopt(t, s, of))
				}
				if c, ok := xp.Controller(s.Get(t, apiserver.Secrets, "infra", "s")); !ok || c.UID != own.GetUID() {
					t.Errorf("the Secret, which came back without its MR, is controlled by %+v", c)
				}
				if u := s.Get(t, apiserver.Buckets, "", "b"); hold.IsMarked(u) || u.GetAnnotations()[xp.AnnotationPaused] != "false" {
					t.Errorf("the MR must have its own settings back: %v", u.GetAnnotations())
				}
				// The plan of the MR may have the same step.
				xptest.Same(t, want, slices.Compact(s.Steps()), "the MR is released once, then the XR is unpaused and released")
			})
		})
	}
}

// A Secret that a provider reads can have any type and no labels. One list of metadata finds it.
func TestAdoptHoldsAnMRWithoutItsInput(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		var mrs []*unstructured.Unstructured
		for _, name := range []string{"a", "b"} {
			in := hold.Input{Namespace: "infra", Name: "password-" + name}
			mrs = append(mrs, apiserver.Held(xptest.MR(name), hold.Hold{Reason: hold.ReasonInput(in), Inputs: []hold.Input{in}}))
		}
		secretOf := func(name string) *unstructured.Unstructured {
			return xptest.Object("v1", "Secret", "infra", name, xptest.Field("Opaque", "type"), xptest.Field(map[string]any{"p": "eA=="}, "data"))
		}
		s := apiserver.NewServer(append(mrs, secretOf("password-a"), secretOf("other"))...)
		s.PrependReactor("list", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
			l, _ := action.(clienttesting.ListActionImpl)
			none := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "SecretList"}}

			return !l.GetListRestrictions().Fields.Empty(), none, nil // None has Crossplane's type.
		})
		w, err := snapshotOf(t.Context(), clusterOf(s), hold.Unverified, selector, []xp.Ref{xp.RefTo(mrs[0]), xp.RefTo(mrs[1])})
		xptest.Must(t, err)
		if all := w.All(cluster.KindSecret.GroupKind(), nil); len(all) != 1 || all[0].GetName() != "password-a" || all[0].Object["data"] != nil {
			t.Errorf("the snapshot must keep only the Secrets that are needed: %v", all)
		}
		if lists := s.Requests("list"); len(lists) != 5 || lists[4] != "secrets " {
			t.Errorf("one list for both Secrets: labelled by the restore, by type, composed, and all; got %v", lists)
		}
		if p := adopt(t, s, mrs[1]); p.Done || !p.Blocked || hold.IsMarked(s.Get(t, apiserver.Buckets, "", "a")) {
			t.Errorf("the MR with its Secret must be released, and the one without must wait: %+v", p)
		}
		s.Put(apiserver.Secrets, secretOf("password-b"))
		done(t, adopt(t, s, mrs[1]))
		// Without the right to list all Secrets of the namespace an MR waits, with a notice.
		s = apiserver.NewServer(mrs[0])
		s.FailOn("list", "secrets", 1<<30, apierrors.NewForbidden(apiserver.Secrets.GroupResource(), "", apiserver.ErrDown))
		if p := adopt(t, s, mrs[0]); p.Done || len(p.Waiting) != 1 || !strings.Contains(waiting(p), "can't be read") {
			t.Errorf("got %+v", p)
		}
	})
}

// HoldLive holds what it can, and leaves to the next look what another writer has changed.
func TestHoldLive(t *testing.T) {
	free, gone, busy := xptest.MR("free", xptest.Reconciled()), xptest.MR("gone", xptest.Reconciled()), xptest.MR("busy", xptest.Deleting())
	changed := xptest.With(xptest.MR("changed", xptest.Reconciled()), xptest.Version("0"))
	s := apiserver.NewServer(free, busy, changed)
	var steps []string
	a := New(clusterOf(s), discardLog()).OnStep(func(c hold.Change) { steps = append(steps, xp.String(c.Target)+": "+c.Step) })
	xptest.Must(t, a.HoldLive(t.Context(), testKey, []*unstructured.Unstructured{s.Get(t, apiserver.Buckets, "", "free"), gone, s.Get(t, apiserver.Buckets, "", "busy"), changed}))
	xptest.Same(t, []string{"Bucket free: " + hold.StepPause}, steps, "only what is free is held")
	for name, want := range map[string]bool{"free": true, "busy": false, "changed": false} {
		if got := xp.IsPaused(s.Get(t, apiserver.Buckets, "", name)); got != want {
			t.Errorf("Bucket %s is paused: %t", name, got)
		}
	}
	s.FailOn("patch", "buckets", 1, errors.New("no"))
	if err := a.HoldLive(t.Context(), testKey, []*unstructured.Unstructured{s.Get(t, apiserver.Buckets, "", "changed")}); err == nil || !strings.Contains(err.Error(), "cannot hold Bucket changed") {
		t.Errorf("a patch that fails must be an error that names the object; got %v", err)
	}
}
