package hooks

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// liveServer returns a server whose controllers report pauses, except those of the named objects.
func liveServer(silent map[string]bool, objects ...*unstructured.Unstructured) *server {
	s := newServer(objects...)
	s.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		_, obj, err := s.patch(action)
		if err != nil {
			return true, nil, err
		}
		u := obj.(*unstructured.Unstructured) //nolint:forcetypeassert // The tracker has no other type.
		if xp.IsPaused(u) && !silent[u.GetName()] {
			u = xptest.With(u, xptest.SeenPaused())
		} else if xp.IsManaged(u) && !xp.IsPaused(u) {
			u = xptest.With(u, xptest.Reconciled())
		}

		return true, u, s.Tracker().Update(action.GetResource(), u, u.GetNamespace())
	})

	return s
}

// A liveTree is a claim with its XR and an MR.
type liveTree struct{ claim, xr, mr *unstructured.Unstructured }

// newLiveTree returns a tree that is reconciled, with finalizers.
func newLiveTree(n string) liveTree {
	x := xptest.XR("x" + n)
	finalizer := xptest.Finalizers("finalizer.apiextensions.crossplane.io")
	l := liveTree{
		mr:    xptest.MR("b"+n, xptest.ControlledBy(x), xptest.Annotated(xp.AnnotationExternalName, "e"+n), xptest.Reconciled(), xptest.Finalizers(xp.FinalizerManaged)),
		claim: xptest.Claim("o"+n, xptest.OfXR(x), xptest.Reconciled(), finalizer),
	}
	l.xr = xptest.XR("x"+n, xptest.ClaimedBy(l.claim), xptest.Refs(l.mr), xptest.Policy("Automatic"), xptest.Reconciled(), finalizer)

	return l
}

// heldAt is when the tests' holds begin.
var heldAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// heldLive returns u as the command hold holds it.
func heldLive(u *unstructured.Unstructured) *unstructured.Unstructured {
	change, why := markKey.HoldLive(u, heldAt)
	if !why.IsZero() {
		panic(why) // The test is wrong.
	}

	return xptest.With(xptest.Merge(u, change.Patch), xptest.SeenPaused())
}

func (l liveTree) held() liveTree {
	l.claim, l.xr, l.mr = heldLive(l.claim), heldLive(l.xr), heldLive(l.mr)

	return l
}

func (l liveTree) all() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{l.claim, l.xr, l.mr}
}

// resultsOf reads the report that a command has printed.
func resultsOf(t *testing.T, out, problems string, err error) results {
	t.Helper()
	got := results{err: problems, out: out, Code: codeOf(err)}
	if !strings.HasPrefix(out, "{") {
		return got
	}
	rep := &report.Report{}
	if err := json.Unmarshal([]byte(out), rep); err != nil {
		t.Fatal(err)
	}
	got.releases, got.Results = rep.Releases, map[string]report.Result{}
	for _, one := range rep.Releases {
		got.Results[one.Object.String()] = one.Result
	}

	return got
}

// untouched returns the MR of an XR as Crossplane composes it.
func untouched(xr *unstructured.Unstructured) *unstructured.Unstructured {
	return xptest.MR("b1", xptest.ControlledBy(xr), xptest.Without("metadata", "finalizers"), xptest.Without("metadata", "annotations"))
}
