package adoption

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestStuck(t *testing.T) {
	running := func(version string) Installation {
		return Installation{Namespace: "upbound", Name: "xp", Version: version, Replicas: 1, Ready: 1}
	}
	open := xptest.Field([]any{map[string]any{"type": xp.ConditionResponsive, "status": "False", "reason": xp.ReasonCircuitOpen}}, "status", "conditions")
	const restart = `run "kubectl -n upbound rollout restart deployment/xp"`
	cases := map[string]struct {
		reason string
		i      Installation
		o      []xptest.Option
		want   []string
	}{
		"NotFound": {reason: "Crossplane may run elsewhere.", want: []string{"no namespace has a Deployment with the label " + LabelCrossplane, "start Crossplane", "[CrossplaneNotRunning]"}},
		"Hidden": {
			reason: "Without the right to list Deployments the message must not claim that there is none.", i: Installation{Hidden: true},
			want: []string{"Deployment can't be read", "check that Crossplane runs", "[CrossplaneSilent]"},
		},
		"Scaled": {
			reason: "Crossplane was scaled down for the restore.", i: Installation{Namespace: "upbound", Name: "xp", Version: "1.18.0"},
			want: []string{`run "kubectl -n upbound scale deployment/xp --replicas=1"`},
		},
		"NotReady": {
			reason: "Crossplane does not start.", i: Installation{Namespace: "upbound", Name: "xp", Version: "2.3.4", Replicas: 1},
			want: []string{"no replica", `"kubectl -n upbound describe deployment/xp"`},
		},
		"V117": {reason: "Version 1.17 has the defect of the watch garbage collector.", i: running("1.17.0"), want: []string{"Crossplane 1.17.0 stops watching", "#5400", restart}},
		"V119": {reason: "Version 1.19 has the defect of the watch garbage collector.", i: running("1.19.2"), want: []string{"Crossplane 1.19.2 stops watching", "#5400", "[WatchLost]", restart}},
		"V120": {reason: "Version 1.20.0 fixed the watch garbage collector.", i: running("1.20.0"), want: []string{"Crossplane 1.20.0 runs and does not reconcile it", "log", restart}},
		"V21":  {reason: "Version 2.1 has the defect of the circuit breaker.", i: running("2.1.0"), want: []string{"Crossplane 2.1.0 runs and does not reconcile it", "drops events", "#7703", restart}},
		"V23Open": {
			reason: "The XR's own condition shows the open circuit breaker.", i: running("2.3.4"), o: []xptest.Option{open},
			want: []string{"circuit breaker is open", "[CircuitOpen]", "--circuit-breaker-burst", restart},
		},
		"Unknown":       {reason: "The image has no version.", i: running(""), want: []string{"Crossplane runs and does not reconcile it", restart}},
		"UnknownAsText": {reason: "The tag of the image is no version.", i: running("latest"), want: []string{"Crossplane latest runs and does not reconcile it", restart}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Stuck(xptest.XR("x", tc.o...), tc.i).String()
			for _, w := range tc.want {
				if !strings.Contains(got, w) {
					t.Errorf("%s\n%q lacks %q", tc.reason, got, w)
				}
			}
		})
	}
}

func TestStuckProvider(t *testing.T) {
	if got := Stuck(xptest.MR("b"), Installation{Name: "crossplane"}).String(); !strings.Contains(got, "its provider") || strings.Contains(got, "restart") {
		t.Errorf("the message must name the provider, not Crossplane: %q", got)
	}
}

// A stuck object is reported once, with all that it waits for and the reason.
func TestStuckIsMarked(t *testing.T) {
	xr := held(xptest.XR("x", xptest.NeverComposed()))
	w := snapshot(xr)
	plan := Next(w, xp.RefTo(xr))
	plan = plan.Named(plan.Pending[0], reason.CrossplaneNotRunning.Messagef("nothing runs"))
	if want := "XOrder x: Crossplane has not reported yet that it is paused: nothing runs [CrossplaneNotRunning]"; !strings.Contains(reason.Join(plan.Waiting), want) {
		t.Errorf("want %q in %q", want, plan.Waiting)
	}
	plans := map[xp.ID]Plan{xp.RefTo(xr).ID(): plan}
	notices := Changes(w, plans, nil)
	if len(notices) != 1 || notices[0].Event != EventStuck {
		t.Fatalf("got %+v", notices)
	}
	if again := Changes(snapshot(xptest.Merge(xr, notices[0].Patch)), plans, nil); len(again) > 0 {
		t.Errorf("the report must come once; got %+v", again)
	}
}

// The claim reports that its XR is being deleted, whatever was reported before.
func TestDeletionIsReportedOnTheClaim(t *testing.T) {
	xr := xptest.XR("x")
	claim := held(xptest.Claim("o", xptest.OfXR(xr)))
	xr = held(xptest.With(xr, xptest.ClaimedBy(claim)))
	w := snapshot(xptest.With(xr, xptest.Deleting()), claim)
	r := xp.RefTo(xr)
	var got []string
	for _, n := range Changes(w, map[xp.ID]Plan{r.ID(): Next(w, r)}, nil) {
		got = append(got, n.Event+" "+xp.String(n.Target))
	}
	xptest.Same(t, []string{EventStopped + " OrderClaim team-a/o", EventStopped + " XOrder x"}, got, "the claim must report that its XR is being deleted")
}

func TestWhyRefused(t *testing.T) {
	const uid = "0a0a0a0a-1111-4222-8333-444444444444"
	for name, tc := range map[string]struct {
		reason string
		said   string
		want   reason.Code
	}{
		"UID": {
			reason: "Only a deletion helps.", want: reason.UIDInImmutable,
			said: `cannot apply composed resource "d": Deployment.apps "w" is invalid: spec.selector: Invalid value: {"i":"` + uid + `"}: field is immutable`,
		},
		"Another": {
			reason: "The restore did not change the value.", want: reason.CrossplaneFailing,
			said: `cannot apply composed resource "d": Deployment.apps "w" is invalid: spec.selector: Invalid value: {"i":"x"}: field is immutable`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WhyRefused(xptest.XR("x", xptest.UID(uid)), tc.said); got.Code != tc.want || !IsRefusal(tc.said) {
				t.Errorf("%s\ngot %v", tc.reason, got)
			}
		})
	}
	if !IsRefused(reason.CrossplaneFailing.Messagef("XOrder x: Crossplane can't reconcile it: Unsynced resources: d")) {
		t.Error("Crossplane names the resources that the API server refuses")
	}
}

func TestDefects(t *testing.T) {
	cases := map[string]struct {
		reason, version string
		unserved        bool
		want            []string
	}{
		"WatchCollector": {reason: "This version has the watch garbage collector.", version: "1.19.2", want: []string{"#5400"}},
		"V120":           {reason: "This version fixes the defect.", version: "1.20.0"},
		"Realtime":       {reason: "The defect does not affect namespaced XRs.", version: "2.0.2", want: []string{"#6780"}},
		"RealtimeMended": {reason: "This version fixes the defect.", version: "2.0.3"},
		"V240":           {reason: "Packages can't be upgraded in this version.", version: "2.4.0", want: []string{"#7838"}},
		"V241Build":      {reason: "Users can run builds of their own.", version: "2.4.1-up.1", want: []string{"#7838"}},
		"V242":           {reason: "This version fixes the defect.", version: "2.4.2"},
		"V241Unserved":   {reason: "A kind that is not served can be of a package that was downloaded in part.", version: "2.4.1", unserved: true, want: []string{"#7838", "#1112"}},
		"V243Unserved":   {reason: "This version fixes the defect.", version: "2.4.3", unserved: true},
		"V236Unserved":   {reason: "This version is not known to fix the defect.", version: "2.3.6", unserved: true, want: []string{"#1112"}},
		"V226Unserved":   {reason: "The defect came with the cache of 2.2.0.", version: "2.2.6", unserved: true, want: []string{"#1112"}},
		"V227Unserved":   {reason: "This version fixes the defect.", version: "2.2.7", unserved: true},
		"V21Unserved":    {reason: "This version has another cache.", version: "2.1.8", unserved: true},
		"Unknown":        {reason: "The image has no version, so there is no warning.", version: ""},
		"NoVersion":      {reason: "A version that can't be compared gives no warning.", version: "1.x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range (Installation{Version: tc.version}).Defects(tc.unserved) {
				_, issue, _ := strings.Cut(d.What, "#")
				got = append(got, "#"+issue[:4])
			}
			xptest.Same(t, tc.want, got, tc.reason, cmpopts.EquateEmpty())
		})
	}
	for _, d := range defects {
		if d.Before == "" || !strings.Contains(d.What, "crossplane #") && !strings.Contains(d.What, "crossplane-runtime #") {
			t.Errorf("a defect must name its issue and its first fixed version: %+v", d)
		}
	}
	if !slices.ContainsFunc(defects, func(d Defect) bool { return d == stopsWatching }) {
		t.Error("the table must have the defect that Stuck reports")
	}
}

func TestWithoutPlugin(t *testing.T) {
	velero := func(name string, initContainers any) *unstructured.Unstructured {
		return xptest.Object("apps/v1", "Deployment", "velero", name, xptest.Field([]any{map[string]any{"name": "velero"}}, "spec", "template", "spec", "containers"),
			xptest.Field(initContainers, "spec", "template", "spec", "initContainers"))
	}
	of := func(name, image string) any { return map[string]any{"name": name, "image": image} }
	aws := of("velero-plugin-for-aws", "velero/velero-plugin-for-aws:v1.13.0")
	xptest.Run(t, map[string]xptest.Row[[]*unstructured.Unstructured, string]{
		"Without": {Reason: "Velero runs with the plugin of its object store only.", In: []*unstructured.Unstructured{velero("velero", []any{aws})}, Want: "velero"},
		"With": {
			Reason: "velero plugin add names the container after the image.",
			In:     []*unstructured.Unstructured{velero("velero", []any{aws, of("crossplane-contrib-velero-plugin-for-crossplane", "r/velero-plugin-for-crossplane:v1")})},
		},
		"Mirror":    {Reason: "A mirror can rename the image.", In: []*unstructured.Unstructured{velero("velero", []any{of("p", "r:5000/mirror/crossplane@sha256:0")})}},
		"Renamed":   {Reason: "With OADP the user chooses the name.", In: []*unstructured.Unstructured{velero("velero", []any{of("crossplane", "r/p@sha256:0")})}},
		"Two":       {Reason: "One of two servers has the plugin.", In: []*unstructured.Unstructured{velero("old", nil), velero("new", []any{of("crossplane", "")})}},
		"Malformed": {Reason: "The API server admits no such list, a fake can.", In: []*unstructured.Unstructured{velero("velero", []any{"x", nil, of("a", "b")})}, Want: "velero"},
	}, func(deployments []*unstructured.Unstructured) string {
		got, ok := WithoutPlugin(deployments)
		if ok != (got.Name != "") {
			t.Errorf("got %q, %t", got.Name, ok)
		}

		return got.Name
	})
}
