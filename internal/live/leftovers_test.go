package live

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var (
	usages    = schema.GroupVersionResource{Group: xp.GroupAPIExtensions, Version: "v1beta1", Resource: "usages"}
	xrds      = schema.GroupVersionResource{Group: xp.GroupAPIExtensions, Version: "v1", Resource: "compositeresourcedefinitions"}
	functions = schema.GroupVersionResource{Group: xp.GroupPackage, Version: "v1", Resource: "functions"}
	packages  = schema.GroupVersionResource{Group: xp.GroupPackage, Version: "v1", Resource: "functionrevisions"}
)

// newPlatform returns a server that also serves XRDs, Functions and Usages.
func newPlatform(objects ...*unstructured.Unstructured) *server {
	var all []runtime.Object
	for _, u := range objects {
		all = append(all, xptest.With(u, xptest.Version("1")))
	}
	s := newServer()
	s.FakeDynamicClient = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		xorders: xptest.LegacyKind + "List", orderclaims: xptest.ClaimKind + "List", buckets: xptest.ManagedKind + "List", revisions: "CompositionRevisionList",
		compositions: "CompositionList", configmaps: "ConfigMapList", secrets: "SecretList", events: "EventList", usages: "UsageList",
		xrds: "CompositeResourceDefinitionList", functions: "FunctionList", packages: "FunctionRevisionList",
	}, all...)
	s.PrependReactor("patch", "*", s.rejectStale)
	s.refuseWatches()
	s.kinds[usages.GroupVersion().String()] = []metav1.APIResource{{Name: usages.Resource, Kind: "Usage"}}
	s.kinds[xp.GroupAPIExtensions+"/v1"] = append(s.kinds[xp.GroupAPIExtensions+"/v1"], metav1.APIResource{Name: xrds.Resource, Kind: "CompositeResourceDefinition"})
	s.kinds[functions.GroupVersion().String()] = []metav1.APIResource{{Name: functions.Resource, Kind: "Function"}, {Name: packages.Resource, Kind: "FunctionRevision"}}

	return s
}

func xrd(o ...xptest.Option) *unstructured.Unstructured {
	return xptest.XRD("xorders.example.org", append([]xptest.Option{xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XOrder"}},
		"status":{"conditions":[{"type":"Established","status":"True"}]}}`)}, o...)...)
}

// A Usage that an XR left behind is reported when the XR is adopted, with an Event, and in each
// later poll.
func TestAdoptReportsLeftovers(t *testing.T) {
	objects, _, xr, _ := restoredTree()
	usage := func(name string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object(usages.GroupVersion().String(), "Usage", "", name, append([]xptest.Option{
			xptest.JSON(`{"spec":{"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","resourceRef":{"name":"b"}}}}`),
		}, o...)...)
	}
	s := newPlatform(append(objects, xrd(), usage("left", xptest.ControlledBy(xr)), usage("own"))...)
	simulateCrossplane(s)
	for i := range 2 {
		plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
		if err != nil {
			t.Fatal(err)
		}
		p := plans[xp.RefTo(xr).ID()]
		if !p.Done || len(p.Remarks) != 1 || !strings.HasPrefix(p.Remarks[0].String(), "Usage left: XOrder x composed it") {
			t.Fatalf("got %+v", p)
		}
		told := slices.DeleteFunc(s.writtenEvents(), func(e string) bool { return !strings.Contains(e, "UsagesLeftBehind") })
		if diff := cmp.Diff([]string{"Warning UsagesLeftBehind x: " + p.Remarks[0].String()}, told); diff != "" {
			t.Errorf("poll %d: one Event when the XR is adopted, and no more: -want, +got:\n%s", i, diff)
		}
	}
}

func TestAdoptLooksForLeftoversOnce(t *testing.T) {
	objects, _, xr, _ := restoredTree()
	s := newPlatform(append(objects, xrd())...)
	simulateCrossplane(s)
	if _, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr)); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, list := range s.requests("list") {
		if strings.HasPrefix(list, "usages") {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("Usages were listed %d times", asked)
	}
}

func TestAdoptWithoutAnswerAboutLeftovers(t *testing.T) {
	objects, _, xr, _ := restoredTree()
	s := newPlatform(append(objects, xrd())...)
	simulateCrossplane(s)
	s.failOn("list", usages.Resource, 1, errDown)
	if plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr)); err != nil || !plans[xp.RefTo(xr).ID()].Done {
		t.Errorf("a failed report must not fail the adoption: %v, %v", plans, err)
	}
}

// An XR with a terminating XRD is not unpaused.
func TestAdoptWaitsForThePlatform(t *testing.T) {
	objects, _, xr, _ := restoredTree()
	for i, u := range objects {
		if xp.IsRevision(u) {
			objects[i] = xptest.With(u, xptest.JSON(`{"spec":{"pipeline":[{"functionRef":{"name":"f"}}]}}`))
		}
	}
	s := newPlatform(append(objects, xrd(xptest.Deleting()))...)
	simulateCrossplane(s)
	plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
	if err != nil {
		t.Fatal(err)
	}
	why := strings.Join(reason.Strings(plans[xp.RefTo(xr).ID()].Waiting), "\n")
	for _, want := range []string{"its XRD xorders.example.org is being deleted", "Function f: the pipeline of XOrder x calls it, and it is not installed"} {
		if !strings.Contains(why, want) {
			t.Errorf("the plan must wait with %q: %s", want, why)
		}
	}
	if patched := s.steps(); len(patched) > 0 {
		t.Errorf("nothing may be released; got %v", patched)
	}
	s.failOn("list", functions.Resource, 1, errDown)
	if _, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr)); err == nil {
		t.Error("without an answer the plan must fail")
	}
}

func TestTerminating(t *testing.T) {
	order, other := schema.GroupKind{Group: "example.org", Kind: "XOrder"}, schema.GroupKind{Group: "example.org", Kind: "XOther"}
	dying := newPlatform(xrd(xptest.Deleting()))
	c := dying.cluster()
	for range 3 {
		got, err := c.Terminating(context.Background(), order)
		if err != nil || got == nil || got.GetName() != "xorders.example.org" {
			t.Errorf("the XRD is being deleted: %v, %v", got, err)
		}
		if got, err := c.Terminating(context.Background(), other); got != nil || err != nil {
			t.Errorf("the kind has no XRD: %v, %v", got, err)
		}
	}
	if diff := cmp.Diff([]string{"compositeresourcedefinitions "}, dying.requests("list")); diff != "" {
		t.Errorf("one list must serve all kinds: -want, +got:\n%s", diff)
	}
	for name, s := range map[string]*server{"Living": newPlatform(xrd()), "None": newPlatform(), "NoCrossplane": newServer()} {
		if got, err := s.cluster().Terminating(context.Background(), order); got != nil || err != nil {
			t.Errorf("%s: no XRD is being deleted: %v, %v", name, got, err)
		}
	}
	down := newPlatform(xrd(xptest.Deleting()))
	down.failOn("list", xrds.Resource, 1, errDown)
	c = down.cluster()
	if _, err := c.Terminating(context.Background(), order); err == nil {
		t.Error("a failed list must be an error")
	}
	if got, err := c.Terminating(context.Background(), order); got == nil || err != nil {
		t.Errorf("a failed list must be repeated: %v, %v", got, err)
	}
}

// A user may delete an XRD during a restore, which takes minutes.
func TestTerminatingExpires(t *testing.T) {
	order := schema.GroupKind{Group: "example.org", Kind: "XOrder"}
	s := newPlatform(xrd())
	c := s.cluster()
	for _, tc := range []struct {
		reason string
		// age is how long ago XRDs were read.
		age  time.Duration
		want bool
	}{
		{reason: "The XRD is not being deleted."},
		{reason: "The cache is valid for a while.", age: definitionsTTL / 2},
		{reason: "The cache expires.", age: 2 * definitionsTTL, want: true},
	} {
		c.definitions.read = c.definitions.read.Add(-tc.age)
		got, err := c.Terminating(t.Context(), order)
		if err != nil || (got != nil) != tc.want {
			t.Errorf("%s Got %v, %v", tc.reason, got, err)
		}
		s.put(xrds, xrd(xptest.Deleting()))
	}
}
