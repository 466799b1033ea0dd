package live

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const (
	// selector selects what a restore has created.
	selector = "velero.io/restore-name=monday"

	cameAt  = "2026-01-02T11:00:00Z"
	laterAt = "2026-01-02T11:05:00Z"
	startAt = "2026-01-02T12:00:00Z"
)

var (
	// monday is that restore.
	monday = adoption.Requester{Restore: "velero/monday"}
	// testKey signs marks.
	testKey = hold.Key(strings.Repeat("k", hold.KeySize))
)

// bubble runs a test with a clock that goes on when all of the test waits. It begins at
// startAt.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, time.January, 2, 12, 0, 0, 0, time.UTC)))
		test(t)
	})
}

// each runs a test in a bubble for each case.
func each[C any](t *testing.T, cases map[string]C, test func(t *testing.T, tc C)) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { bubble(t, func(t *testing.T) { test(t, tc) }) })
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// same fails unless what is there is what is wanted, and says why that is wanted.
func same(t *testing.T, want, got any, reason string, o ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, o...); diff != "" {
		t.Errorf("%s\n-want, +got:\n%s", reason, diff)
	}
}

// newFastAdopter returns an Adopter that ends a poll soon after the last change.
func newFastAdopter(s *server) *Adopter {
	a := NewAdopter(s.cluster(), discardLog())
	a.firstWait, a.patience, a.limit, a.pause = 50*time.Millisecond, 50*time.Millisecond, 5*time.Second, 10*time.Millisecond

	return a
}

// adopt polls as a new process does, and returns the plan of the object.
func adopt(t *testing.T, s *server, u *unstructured.Unstructured) adoption.Plan {
	t.Helper()

	return adoptWith(t, newFastAdopter(s), hold.Unverified, u)
}

func adoptWith(t *testing.T, a *Adopter, key hold.Key, u *unstructured.Unstructured) adoption.Plan {
	t.Helper()
	plans, err := a.Adopt(t.Context(), key, monday, selector, xp.RefTo(u))
	must(t, err)

	return plans[xp.RefTo(u).ID()]
}

func done(t *testing.T, p adoption.Plan) {
	t.Helper()
	if !p.Done {
		t.Errorf("it must be adopted: %+v", p)
	}
}

// waiting returns what a plan waits for.
func waiting(p adoption.Plan) string { return strings.Join(reason.Strings(p.Waiting), "\n") }

func discardLog() logrus.FieldLogger {
	log, _ := logtest.NewNullLogger()

	return log
}

// held returns an object with a hold of the restore, and the restore's label.
func held(own *unstructured.Unstructured, of hold.Hold) *unstructured.Unstructured {
	u := xptest.With(own, xptest.Labelled("velero.io/restore-name", "monday"))
	of.Restore = monday.Restore
	if _, err := hold.Put(u, of); err != nil {
		panic(err) // The test is wrong.
	}

	return u
}

// restored returns an object as a restore leaves it: labelled, and held if it is an XR or a claim.
func restored(u *unstructured.Unstructured) *unstructured.Unstructured {
	if xp.IsComposite(u) || xp.IsClaim(u) {
		return held(u, hold.Hold{Since: startAt})
	}

	return xptest.With(u, xptest.Labelled("velero.io/restore-name", "monday"))
}

// signed returns a restored object whose mark has a genuine signature.
func signed(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = restored(u)
	if err := testKey.Sign(u, u.GetNamespace()); err != nil {
		panic(err) // The test is wrong.
	}

	return u
}

// checkOwn fails unless an object is as in the backup, with the restore's label.
func checkOwn(t *testing.T, own, now *unstructured.Unstructured) {
	t.Helper()
	now = xptest.With(now, xptest.Without("status"), xptest.Without("metadata", "resourceVersion"))
	if len(now.GetAnnotations()) == 0 {
		xptest.Without("metadata", "annotations")(now)
	}
	same(t, xptest.With(own, xptest.Labelled("velero.io/restore-name", "monday")), now, xp.String(own)+" must be as in the backup")
}

// restoredTree returns a claim, its XR, a nested XR and their MRs, all restored.
func restoredTree() (objects []*unstructured.Unstructured, claim, xr, child *unstructured.Unstructured) {
	x, c := xptest.XR("x"), xptest.XR("c")
	deep, mine := xptest.MR("deep", xptest.ControlledBy(c), xptest.Reconciled()), xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	child = xptest.XR("c", xptest.ControlledBy(x), xptest.Refs(deep), xptest.Policy("Automatic"))
	claim = xptest.Claim("o", xptest.OfXR(x))
	xr = xptest.XR("x", xptest.ClaimedBy(claim), xptest.Refs(child, mine))

	return []*unstructured.Unstructured{
		restored(claim), restored(xr), restored(child), restored(deep), restored(mine), restored(xptest.Revision(xptest.RevisionName, x)),
	}, claim, xr, child
}

// reconcileAtOnce returns an XR or claim as Crossplane leaves it, or nil if that changes nothing.
func reconcileAtOnce(u *unstructured.Unstructured) *unstructured.Unstructured {
	if !xp.IsComposite(u) && !xp.IsClaim(u) {
		return nil
	}
	condition := xptest.Reconciled()
	if xp.IsPaused(u) {
		condition = xptest.SeenPaused()
	}
	if next := xptest.With(u, condition); !cmp.Equal(next, u) {
		return next
	}

	return nil
}

// simulateCrossplane makes each list of XRs see the next reconcile of each.
func simulateCrossplane(s *server) {
	simulateCrossplaneExcept(s, func(*unstructured.Unstructured) bool { return false })
}

// simulateCrossplaneExcept is simulateCrossplane without the objects for which isLate returns true.
func simulateCrossplaneExcept(s *server, isLate func(u *unstructured.Unstructured) bool) {
	s.PrependReactor("list", "xorders", func(clienttesting.Action) (bool, runtime.Object, error) {
		for gvr, kind := range map[schema.GroupVersionResource]string{xorders: xptest.LegacyKind, orderclaims: xptest.ClaimKind} {
			for _, u := range s.all(gvr, schema.FromAPIVersionAndKind(xptest.LegacyVersion, kind)) {
				if isLate(u) {
					continue
				}
				if next := reconcileAtOnce(u); next != nil {
					s.put(gvr, next)
				}
			}
		}

		return false, nil, nil
	})
}

// simulateProvider makes each list of MRs see the next reconcile of each. It fails the test if the
// provider would create anything.
func simulateProvider(t *testing.T, s *server, exists map[string]bool) {
	t.Helper()
	s.PrependReactor("list", "buckets", func(clienttesting.Action) (bool, runtime.Object, error) {
		for _, u := range s.all(buckets, schema.FromAPIVersionAndKind(xptest.ManagedVersion, xptest.ManagedKind)) {
			condition := xptest.Reconciled()
			switch found := exists[u.GetAnnotations()[xp.AnnotationExternalName]]; {
			case xp.IsPaused(u):
				condition = xptest.SeenPaused()
			case !found && xp.MayCreate(u):
				t.Errorf("the provider creates an external resource for %s", xp.String(u))
			case !found:
				condition = xptest.Synced("False", "ReconcileError", "external resource does not exist")
			}
			if next := xptest.With(u, condition); !cmp.Equal(next, u) {
				s.put(buckets, next)
			}
		}

		return false, nil, nil
	})
}
