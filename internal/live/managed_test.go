package live

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// simulateProvider makes each list of MRs see the next reconcile of each. It fails the test if the
// provider would create anything.
func simulateProvider(t *testing.T, s *server, exists map[string]bool) {
	t.Helper()
	s.PrependReactor("list", "buckets", func(clienttesting.Action) (bool, runtime.Object, error) {
		obj, err := s.Tracker().List(buckets, schema.FromAPIVersionAndKind(xptest.ManagedVersion, xptest.ManagedKind), "")
		if err != nil {
			return true, nil, err
		}
		for _, u := range obj.(*unstructured.UnstructuredList).Items { //nolint:forcetypeassert // The tracker returns only lists.
			condition := xptest.Reconciled()
			switch found := exists[u.GetAnnotations()[xp.AnnotationExternalName]]; {
			case xp.IsPaused(&u):
				condition = xptest.SeenPaused()
			case !found && xp.MayCreate(&u):
				t.Errorf("the provider creates an external resource for %s", xp.String(&u))
			case !found:
				condition = xptest.Synced("False", "ReconcileError", "external resource does not exist")
			}
			if next := xptest.With(&u, condition); !cmp.Equal(next, &u) {
				s.put(buckets, next)
			}
		}

		return false, nil, nil
	})
}

// heldMR returns an MR as a restore holds it.
func heldMR(own *unstructured.Unstructured, of adoption.Hold) *unstructured.Unstructured {
	u := restored(own)
	of.Restore = "velero/monday"
	if _, err := adoption.Put(u, of); err != nil {
		panic(err) // The test is wrong.
	}

	return u
}

// One poll unpauses an MR that observes first, lets it be observed twice and returns its settings,
// and then adopts its XR.
func TestAdoptObservesFirst(t *testing.T) {
	x := xptest.XR("x")
	own := xptest.MR("b", xptest.ControlledBy(x), xptest.JSON(`{"spec":{"managementPolicies":["*"]}}`))
	xr := xptest.XR("x", xptest.Refs(own))
	s := newServer(restored(xr), heldMR(own, adoption.Hold{Observes: true}), restored(xptest.Revision(xptest.RevisionName, x)))
	simulateCrossplane(s)
	simulateProvider(t, s, map[string]bool{"b": true})
	adopter := newFastAdopter(s)
	adopter.limit = time.Minute
	plans, err := adopter.Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
	if err != nil || !plans[xp.RefTo(xr).ID()].Done {
		t.Fatalf("got %+v, %v", plans, err)
	}
	if diff := cmp.Diff([]string{"buckets /b", "buckets /b", "buckets /b", "xorders /x", "xorders /x"}, s.requests("patch")); diff != "" {
		t.Errorf("the MR is unpaused, checked once more and gets its settings back, then the XR is unpaused and released: -want, +requested:\n%s", diff)
	}
	got := xptest.With(s.get(t, buckets, "", "b"), xptest.Without("status"), xptest.Without("metadata", "resourceVersion"))
	if diff := cmp.Diff(xptest.With(own, xptest.Labelled("velero.io/restore-name", "monday")), got); diff != "" {
		t.Errorf("-own, +now:\n%s", diff)
	}
}

// An MR whose external resource is gone is not created again without a user's consent. Then its XR
// goes on.
func TestAdoptCreatesNothingWithoutConsent(t *testing.T) {
	x := xptest.XR("x")
	own := xptest.MR("b", xptest.ControlledBy(x))
	xr := xptest.XR("x", xptest.Refs(own))
	s := newServer(restored(xr), heldMR(own, adoption.Hold{Observes: true}), restored(xptest.Revision(xptest.RevisionName, x)))
	simulateCrossplane(s)
	exists := map[string]bool{}
	simulateProvider(t, s, exists)
	plan := func() adoption.Plan {
		plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
		if err != nil {
			t.Fatal(err)
		}

		return plans[xp.RefTo(xr).ID()]
	}
	if p := plan(); p.Done || len(p.Waiting) != 1 || !strings.Contains(p.Waiting[0].String(), "external resource does not exist") || !strings.Contains(p.Waiting[0].String(), `["*"]`) {
		t.Fatalf("got %+v", p)
	}
	exists["b"] = true
	s.put(buckets, xptest.With(s.get(t, buckets, "", "b"), xptest.JSON(`{"spec":{"managementPolicies":["*"]}}`)))
	if p := plan(); !p.Done {
		t.Errorf("got %+v", p)
	}
}

// An MR without an external-name stays held, with its XR, until a user sets the name. Then both go
// on.
func TestAdoptWaitsForAName(t *testing.T) {
	x := xptest.XR("x")
	own := xptest.MR("b", xptest.ControlledBy(x), xptest.Without("metadata", "annotations", xp.AnnotationExternalName))
	xr := xptest.XR("x", xptest.Refs(own))
	s := newServer(restored(xr), heldMR(own, adoption.Hold{Identity: xp.Unknown}), restored(xptest.Revision(xptest.RevisionName, x)))
	simulateCrossplane(s)
	simulateProvider(t, s, map[string]bool{"vpc-1": true})
	for range 2 {
		plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
		if p := plans[xp.RefTo(xr).ID()]; err != nil || p.Done || len(p.Waiting) != 1 || !strings.Contains(p.Waiting[0].String(), xp.AnnotationExternalName) {
			t.Fatalf("got %+v, %v", p, err)
		}
	}
	if patches := s.steps(); len(patches) > 0 {
		t.Fatalf("nothing may change before that; got %v", patches)
	}
	s.put(buckets, xptest.With(s.get(t, buckets, "", "b"), xptest.Annotated(xp.AnnotationExternalName, "vpc-1")))
	plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
	if p := plans[xp.RefTo(xr).ID()]; err != nil || !p.Done {
		t.Errorf("got %+v, %v", p, err)
	}
	if h, _ := adoption.HoldOf(s.get(t, buckets, "", "b")); h != nil {
		t.Errorf("the MR still has its hold: %+v", h)
	}
}

// An MR that no XR composes has its own operation, with the same result.
func TestAdoptWaitsForANameOfAnMRAlone(t *testing.T) {
	own := xptest.MR("b", xptest.Without("metadata", "annotations"), xptest.Annotated(xp.AnnotationCreatePending, "2026-01-02T03:04:05Z"))
	s := newServer(heldMR(own, adoption.Hold{Identity: xp.CreatePending}))
	simulateProvider(t, s, map[string]bool{"vpc-1": true})
	adopt := func() adoption.Plan {
		plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(own))
		if err != nil {
			t.Fatal(err)
		}

		return plans[xp.RefTo(own).ID()]
	}
	if p := adopt(); p.Done || len(p.Waiting) != 1 || len(s.requests("patch")) > 0 {
		t.Fatalf("got %+v", p)
	}
	s.put(buckets, xptest.With(s.get(t, buckets, "", "b"), xptest.Annotated(xp.AnnotationExternalName, "vpc-1"),
		xptest.Without("metadata", "annotations", xp.AnnotationCreatePending)))
	if p := adopt(); !p.Done {
		t.Errorf("got %+v", p)
	}
}
