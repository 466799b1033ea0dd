package adoption

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
			reason: "Without the right to list Deployments the message must not claim that there is none.", i: Installation{Hidden: true}, want: []string{"Deployment can't be read", "check that Crossplane runs", "[CrossplaneSilent]"},
		},
		"HiddenOpen": {reason: "The XR's own condition shows the open circuit breaker.", i: Installation{Hidden: true}, o: []xptest.Option{open}, want: []string{"circuit breaker is open", "restart Crossplane"}},
		"Scaled": {
			reason: "Crossplane was scaled down for the restore.", i: Installation{Namespace: "upbound", Name: "xp", Version: "1.18.0"},
			want: []string{`run "kubectl -n upbound scale deployment/xp --replicas=1"`},
		},
		"NotReady": {
			reason: "Crossplane does not start.", i: Installation{Namespace: "upbound", Name: "xp", Version: "2.3.4", Replicas: 1},
			want: []string{"no replica", `"kubectl -n upbound describe deployment/xp"`},
		},
		"V117": {reason: "Version 1.17 has the defect of the watch garbage collector.", i: running("1.17.0"), want: []string{"Crossplane 1.17.0 stops watching", "#5400", restart}},
		"V118": {reason: "Version 1.18 has the defect of the watch garbage collector.", i: running("1.18.3"), want: []string{"Crossplane 1.18.3 stops watching", "#5400", restart}},
		"V119": {reason: "Version 1.19 has the defect of the watch garbage collector.", i: running("1.19.2"), want: []string{"Crossplane 1.19.2 stops watching", "#5400", "[WatchLost]", restart}},
		"V120": {reason: "Version 1.20.0 fixed the watch garbage collector.", i: running("1.20.0"), want: []string{"Crossplane 1.20.0 runs and does not reconcile it", "log", restart}},
		"V20":  {reason: "The circuit breaker came with version 2.1.", i: running("2.0.4"), want: []string{"Crossplane 2.0.4 runs and does not reconcile it", restart}},
		"V21":  {reason: "Version 2.1 has the defect of the circuit breaker.", i: running("2.1.0"), want: []string{"Crossplane 2.1.0 runs and does not reconcile it", "drops events", "#7703", restart}},
		"V23Open": {
			reason: "The XR's own condition shows the open circuit breaker.", i: running("2.3.4"), o: []xptest.Option{open}, want: []string{"circuit breaker is open", "[CircuitOpen]", "--circuit-breaker-burst", restart},
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
	if diff := cmp.Diff([]string{EventStopped + " OrderClaim team-a/o", EventStopped + " XOrder x"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
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
