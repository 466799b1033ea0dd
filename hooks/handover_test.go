package hooks

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// own is the UID of the fake cluster, and other that of the one that takes over.
const own, other = "own", "other"

// handoverServer returns a server whose controllers report pauses, except those of the named
// objects. It keeps a deleted object that has finalizers.
func handoverServer(silent map[string]bool, objects ...*unstructured.Unstructured) *server {
	s := newServer(append(objects, xptest.Object("v1", "Namespace", "", metav1.NamespaceSystem, xptest.UID(own)))...)
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
	s.PrependReactor("patch", "configmaps", s.patchConfigMap)
	s.PrependReactor("delete", "*", s.deleteFinalized)

	return s
}

func (s *server) patchConfigMap(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchActionImpl) //nolint:forcetypeassert // It is one.
	obj, err := s.Tracker().Get(patch.GetResource(), patch.GetNamespace(), patch.GetName())
	if err != nil {
		return true, nil, err
	}
	var document map[string]any
	if err := json.Unmarshal(patch.GetPatch(), &document); err != nil {
		return true, nil, err
	}
	u := xptest.Merge(obj.(*unstructured.Unstructured), document) //nolint:forcetypeassert // The tracker has no other type.

	return true, u, s.Tracker().Update(patch.GetResource(), u, u.GetNamespace())
}

func (s *server) deleteFinalized(action clienttesting.Action) (bool, runtime.Object, error) {
	d := action.(clienttesting.DeleteActionImpl) //nolint:forcetypeassert // It is one.
	obj, err := s.Tracker().Get(d.GetResource(), d.GetNamespace(), d.GetName())
	if err != nil {
		return true, nil, err
	}
	u := obj.(*unstructured.Unstructured) //nolint:forcetypeassert // The tracker has no other type.
	if len(u.GetFinalizers()) > 0 {
		return true, nil, s.Tracker().Update(d.GetResource(), xptest.With(u, xptest.Deleting()), u.GetNamespace())
	}

	return true, nil, s.Tracker().Delete(d.GetResource(), d.GetNamespace(), d.GetName())
}

// records returns the recorded handovers, with the times replaced by "set".
func (s *server) records(t *testing.T) map[string]adoption.Handover {
	t.Helper()
	all, err := live.NewCluster(s, s).Handovers(t.Context(), "velero")
	if err != nil {
		t.Fatal(err)
	}
	set := func(v string) string {
		if _, err := time.Parse(time.RFC3339, v); err != nil {
			return v
		}

		return "set"
	}
	got := map[string]adoption.Handover{}
	for namespace, h := range all {
		got[namespace] = adoption.Handover{Since: set(h.Since), Quiet: set(h.Quiet)}
	}

	return got
}

// record returns the ConfigMap with the record of a handover of the tests' namespace.
func record() *unstructured.Unstructured {
	return xptest.Object("v1", "ConfigMap", "velero", live.HandoverConfigMap, xptest.Field(`{"since":"2026-01-02T03:04:05Z"}`, "data", xptest.Namespace))
}

// A liveTree is a claim with its XR, an MR and a composed Usage.
type liveTree struct{ claim, xr, mr, usage *unstructured.Unstructured }

// newLiveTree returns a tree that is reconciled, with finalizers.
func newLiveTree(n string) liveTree {
	x := xptest.XR("x" + n)
	finalizer := xptest.Finalizers("finalizer.apiextensions.crossplane.io")
	l := liveTree{
		mr:    xptest.MR("b"+n, xptest.ControlledBy(x), xptest.Annotated(xp.AnnotationExternalName, "e"+n), xptest.Reconciled(), xptest.Finalizers(xp.FinalizerManaged)),
		claim: xptest.Claim("o"+n, xptest.OfXR(x), xptest.Reconciled(), finalizer),
		usage: xptest.Object(xp.GroupProtection+"/v1beta1", "ClusterUsage", "", "u"+n, xptest.ControlledBy(x)),
	}
	l.xr = xptest.XR("x"+n, xptest.ClaimedBy(l.claim), xptest.Refs(l.mr), xptest.Policy("Automatic"), xptest.Reconciled(), finalizer)

	return l
}

// withUsage adds the Usage to what the XR composes.
func (l liveTree) withUsage() liveTree {
	l.xr = xptest.With(l.xr, xptest.Refs(l.mr, l.usage))

	return l
}

// heldAt is when the tests' handovers begin.
var heldAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// handedOver returns u as the command hold holds it.
func handedOver(u *unstructured.Unstructured) *unstructured.Unstructured {
	change, why := markKey.HandOver(u, heldAt)
	if !why.IsZero() {
		panic(why) // The test is wrong.
	}

	return xptest.With(xptest.Merge(u, change.Patch), xptest.SeenPaused())
}

func (l liveTree) held() liveTree {
	l.claim, l.xr, l.mr = handedOver(l.claim), handedOver(l.xr), handedOver(l.mr)

	return l
}

func (l liveTree) all() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{l.claim, l.xr, l.mr}
}

// adoptedThere returns the report of the other cluster, in which the tree is adopted.
func (l liveTree) adoptedThere() *report.Report {
	node := func(u *unstructured.Unstructured, role report.Role, children ...*report.Node) *report.Node {
		return &report.Node{Ref: xp.RefTo(u), Role: role, State: report.Adopted, ExternalName: xp.Annotation(u, xp.AnnotationExternalName), Children: children}
	}
	tree := node(l.claim, report.RoleClaim, node(l.xr, report.RoleComposite, node(l.mr, report.RoleManaged)))

	return &report.Report{
		APIVersion: report.APIVersion, Kind: report.KindValidation, Cluster: other, Time: heldAt.Add(time.Hour), Trees: []*report.Node{tree},
	}
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
