package adopter

import (
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

// FuzzAdopt polls a cluster in which a tenant controls all of one object, beside another tenant's
// held XR.
func FuzzAdopt(f *testing.F) {
	xptest.Seeds(func(animal uint8, patch []byte) { f.Add(animal, patch) })
	f.Fuzz(func(t *testing.T, animal uint8, patch []byte) {
		u, gvr, ok := tenantObject(animal, patch)
		if !ok {
			return
		}
		s := apiserver.NewServer()
		if !gvr.Empty() {
			s = apiserver.NewServer(xptest.With(u, xptest.Labelled("velero.io/restore-name", "monday")))
		}
		mr := xptest.MR("victim")
		xr := apiserver.Restored(xptest.XR("victim", xptest.Refs(mr)))
		s.Put(apiserver.XOrders, xr)
		s.Put(apiserver.Buckets, xptest.With(mr, xptest.ControlledBy(xr)))
		a := newFastAdopter(s)
		a.patience, a.limit = time.Nanosecond, time.Nanosecond
		plans, err := a.Adopt(t.Context(), hold.Unverified, apiserver.Monday, selector, xp.RefTo(u))
		if err != nil {
			t.Errorf("a tenant's object stops all adoptions: %v", err)
		}
		if _, ok := plans[xp.RefTo(xr).ID()]; len(plans) > 1 && !ok {
			t.Errorf("the objects of another owner must have no plan: %v", plans)
		}
		_ = a.GiveUp(t.Context(), hold.Unverified, xp.RefTo(u), "it is tested") // A mark that can't be read is an error.
		for _, action := range s.Actions() {
			if p, ok := action.(clienttesting.PatchActionImpl); ok && p.GetName() == mr.GetName() && p.GetResource() == apiserver.Buckets {
				t.Errorf("another owner's composed resource was patched: %s", p.GetPatch())
			}
		}
	})
}

// FuzzAdoptForged polls a cluster with signed marks. A tenant controls all of one XR, claim or MR
// with a forged mark, or puts a genuine mark back after each poll.
func FuzzAdoptForged(f *testing.F) {
	xptest.Seeds(func(animal uint8, patch []byte) {
		f.Add(animal, patch, false)
		f.Add(animal, patch, true)
	})
	for n := range xptest.HostileObjects() {
		f.Add(uint8(n), []byte(`{"spec":{"resourceRefs":null,"claimRef":null,"resourceRef":null}}`), true)
	}
	f.Fuzz(func(t *testing.T, animal uint8, patch []byte, replay bool) {
		u, gvr, ok := tenantObject(animal, patch)
		if !ok || gvr.Empty() {
			return
		}
		mark := `{"restore":"velero/monday","since":"2026-01-02T03:04:05Z","reason":"forged","paused":"true","secret":true,"mac":"forged","resourceRefs":[` +
			`{"apiVersion":"v1","kind":"ConfigMap","namespace":"team-a","name":"bystander"},{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","name":"victim"}]}`
		if replay {
			held := xptest.With(u, xptest.Without("metadata", "annotations"), xptest.Labelled("velero.io/restore-name", "monday"))
			if _, err := hold.Put(held, hold.Hold{Restore: "velero/monday", Since: "2026-01-02T03:04:05Z"}); err != nil {
				return // A restore would reject it.
			}
			xptest.Must(t, testKey.Sign(held, held.GetNamespace()))
			mark = xp.Annotation(held, hold.Annotation)
			if _, ok := u.Object["status"].(map[string]any); ok {
				u = xptest.With(u, xptest.SeenPaused()) // It gets as far as possible.
			}
		}
		u = xptest.With(u, xptest.Annotated(hold.Annotation, mark), xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Labelled("velero.io/restore-name", "monday"))
		mr := xptest.MR("victim", xptest.Reconciled())
		xr := xptest.XR("victim", xptest.Refs(mr))
		s := apiserver.NewServer(u, signed(xr), apiserver.Restored(xptest.With(mr, xptest.ControlledBy(xr))), apiserver.Restored(xptest.Revision(xptest.RevisionName, xr)),
			xptest.With(xptest.Object("v1", "ConfigMap", xptest.Namespace, "bystander"), xptest.Labelled("velero.io/restore-name", "monday")))
		simulateCrossplaneExcept(s, func(u *unstructured.Unstructured) bool { return u.GetName() != "victim" })
		s.PrependReactor("list", gvr.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			if now := s.Get(t, gvr, u.GetNamespace(), u.GetName()); !maps.Equal(now.GetAnnotations(), u.GetAnnotations()) {
				s.Put(gvr, xptest.With(u, xptest.Version(now.GetResourceVersion())))
			}

			return false, nil, nil
		})
		a := newFastAdopter(s)
		a.limit = 100 * time.Millisecond
		var p adoption.Plan
		for n := 0; n < 20 && !p.Done; n++ { // A slow machine needs more polls.
			plans, err := a.Adopt(t.Context(), testKey, apiserver.Monday, selector, xp.RefTo(xr))
			if err != nil {
				t.Fatalf("a tenant's object stops all adoptions: %v", err)
			}
			p = plans[xp.RefTo(xr).ID()]
		}
		if !p.Done {
			t.Errorf("an XR waits because of another tenant's object: %+v", p)
		}
		checkPatches(t, s, u, replay)
	})
}

// tenantObject returns an object that a tenant has written, and its resource if the server has it;
// ok is false if the API server would reject it.
func tenantObject(animal uint8, patch []byte) (u *unstructured.Unstructured, gvr schema.GroupVersionResource, ok bool) {
	u, ok = xptest.Patched(animal, patch)
	was := xptest.HostileObjects()[int(animal)%len(xptest.HostileObjects())]
	gvr = map[string]schema.GroupVersionResource{xptest.LegacyKind: apiserver.XOrders, xptest.ClaimKind: apiserver.OrderClaims, xptest.ManagedKind: apiserver.Buckets}[was.GetKind()]
	if !ok || xp.CheckMetadata(u) != nil || gvr == apiserver.Buckets && was.GetNamespace() != "" {
		return nil, gvr, false
	}
	u.SetGroupVersionKind(was.GroupVersionKind())
	u.SetNamespace(was.GetNamespace())
	u.SetName(was.GetName())
	u.SetUID(was.GetUID())

	return u, gvr, true
}

// checkPatches fails if anything but the other tenant's XR was patched, and, with replay, the
// object with the genuine mark.
func checkPatches(t *testing.T, s *apiserver.Server, u *unstructured.Unstructured, replay bool) {
	t.Helper()
	own := 0
	for _, action := range s.Actions() {
		p, ok := action.(clienttesting.PatchActionImpl)
		if !ok {
			continue
		}
		switch {
		case p.GetName() == u.GetName() && p.GetNamespace() == u.GetNamespace() && replay:
			own++
		case p.GetName() != "victim" || p.GetResource() != apiserver.XOrders:
			t.Errorf("%s %s/%s was patched: %s", p.GetResource().Resource, p.GetNamespace(), p.GetName(), p.GetPatch())
		}
	}
	// It is unpaused, released, reported and requested once each.
	if own > 6 {
		t.Errorf("a mark that a tenant puts back was patched %d times: %v", own, s.Requests("patch"))
	}
	if told := s.WrittenEvents(); len(told) > 6 {
		t.Errorf("there are %d Events: %v", len(told), told)
	}
}
