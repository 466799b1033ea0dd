package adopter

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

const (
	// selector selects what a restore has created.
	selector = "velero.io/restore-name=monday"

	cameAt  = "2026-01-02T11:00:00Z"
	laterAt = "2026-01-02T11:05:00Z"
)

// testKey signs marks.
var testKey = hold.Key(strings.Repeat("k", hold.KeySize))

// newFastAdopter returns an Adopter that ends a poll soon after the last change.
func newFastAdopter(s *apiserver.Server) *Adopter {
	a := New(clusterOf(s), discardLog())
	a.firstWait, a.patience, a.limit, a.pause = 50*time.Millisecond, 50*time.Millisecond, 5*time.Second, 10*time.Millisecond

	return a
}

// adopt polls as a new process does, and returns the plan of the object.
func adopt(t *testing.T, s *apiserver.Server, u *unstructured.Unstructured) adoption.Plan {
	t.Helper()

	return adoptWith(t, newFastAdopter(s), hold.Unverified, u)
}

func adoptWith(t *testing.T, a *Adopter, key hold.Key, u *unstructured.Unstructured) adoption.Plan {
	t.Helper()
	plans, err := a.Adopt(t.Context(), key, apiserver.Monday, selector, xp.RefTo(u))
	xptest.Must(t, err)

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

// signed returns a restored object whose mark has a genuine signature.
func signed(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = apiserver.Restored(u)
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
	xptest.Same(t, xptest.With(own, xptest.Labelled("velero.io/restore-name", "monday")), now, xp.String(own)+" must be as in the backup")
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
func simulateCrossplane(s *apiserver.Server) {
	simulateCrossplaneExcept(s, func(*unstructured.Unstructured) bool { return false })
}

// simulateCrossplaneExcept is simulateCrossplane without the objects for which isLate returns true.
func simulateCrossplaneExcept(s *apiserver.Server, isLate func(u *unstructured.Unstructured) bool) {
	s.PrependReactor("list", "xorders", func(clienttesting.Action) (bool, runtime.Object, error) {
		for gvr, kind := range map[schema.GroupVersionResource]string{apiserver.XOrders: xptest.LegacyKind, apiserver.OrderClaims: xptest.ClaimKind} {
			for _, u := range s.All(gvr, schema.FromAPIVersionAndKind(xptest.LegacyVersion, kind)) {
				if isLate(u) {
					continue
				}
				if next := reconcileAtOnce(u); next != nil {
					s.Put(gvr, next)
				}
			}
		}

		return false, nil, nil
	})
}

// simulateProvider makes each list of MRs see the next reconcile of each. It fails the test if the
// provider would create anything.
func simulateProvider(t *testing.T, s *apiserver.Server, exists map[string]bool) {
	t.Helper()
	s.PrependReactor("list", "buckets", func(clienttesting.Action) (bool, runtime.Object, error) {
		for _, u := range s.All(apiserver.Buckets, schema.FromAPIVersionAndKind(xptest.ManagedVersion, xptest.ManagedKind)) {
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
				s.Put(apiserver.Buckets, next)
			}
		}

		return false, nil, nil
	})
}

// clusterOf returns a Cluster with its own caches, as a new process has.
func clusterOf(s *apiserver.Server) *cluster.Cluster { return cluster.New(s, s) }

// connect returns a Cluster with its own caches, as a new process has.
func connect(tb testing.TB, s *apiserver.Transport) *cluster.Cluster {
	tb.Helper()
	c, err := cluster.NewForConfig(s.Config())
	if err != nil {
		tb.Fatal(err)
	}

	return c
}

// newAdopter returns an Adopter of a new process, whose watches end with the test.
func newAdopter(tb testing.TB, s *apiserver.Transport) *Adopter {
	tb.Helper()
	a := New(connect(tb, s), discardLog())
	tb.Cleanup(a.forget)

	return a
}
