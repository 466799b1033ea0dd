package adoption

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func definition(kind string, o ...xptest.Option) *unstructured.Unstructured {
	return xptest.XRD("xorders.example.org", append([]xptest.Option{
		xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"` + kind + `"}},"status":{"conditions":[{"type":"Established","status":"True"}]}}`),
	}, o...)...)
}

func condition(kind, status, reason, message string) xptest.Option {
	return xptest.Field([]any{map[string]any{"type": kind, "status": status, "reason": reason, "message": message}}, "status", "conditions")
}

func function(o ...xptest.Option) *unstructured.Unstructured {
	return xptest.Object("pkg.crossplane.io/v1", "Function", "", "f", o...)
}

func functionRevision(state, endpoint string, o ...xptest.Option) *unstructured.Unstructured {
	return xptest.Object("pkg.crossplane.io/v1", "FunctionRevision", "", "f-1", append([]xptest.Option{
		xptest.Labelled(xp.LabelPackage, "f"), xptest.Field(state, "spec", "desiredState"), xptest.Field(endpoint, "status", "endpoint"),
	}, o...)...)
}

// observed returns a Snapshot in which the platform was observed.
func observed(objects ...*unstructured.Unstructured) *Snapshot {
	w := snapshot(objects...)
	for _, gvk := range []schema.GroupVersionKind{xp.KindDefinition, xp.KindFunction, xp.KindFunctionRevision, xp.KindEnvironment} {
		w.AddedAll(gvk.GroupKind())
	}

	return w
}

// An older Crossplane drops fields of a revision. A function can then leave out composed resources.
func TestNextWaitsForWhatARevisionRequires(t *testing.T) {
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	requiring := xptest.With(xptest.XR("x", xptest.Refs(bucket)), xptest.SeenPaused())
	h, err := Put(requiring, Hold{Restore: restoreName, Since: cameAt, Required: []string{"requiredResources of the step a", "requiredSchemas of the step a"}})
	if err != nil {
		t.Fatal(err)
	}
	revision := func(name, requirements string) *unstructured.Unstructured {
		return xptest.Revision(name, x, xptest.JSON(`{"spec":{"pipeline":[{"step":"a","requirements":`+requirements+`}]}}`))
	}
	all, some := revision(xptest.RevisionName, `{"requiredResources":[{}],"requiredSchemas":[{}]}`), revision(xptest.RevisionName, `{"requiredResources":[{}]}`)
	chosen := xptest.With(requiring, xptest.Field("chosen", "spec", "compositionRevisionRef", "name"))
	xrd := definition("XOrder")
	ready := outcome{Step: stepUnpause, Target: "XOrder x", Adopted: 1, Total: 1}
	other := ready
	other.Remarks = []string{changedFollowing(chosen, h).String()}
	lost := func(what string) outcome {
		return outcome{Adopted: 1, Total: 1, Waiting: []string{"CompositionRevision orders-1a2b3c: this Crossplane has dropped what its pipeline requires: " + what +
			". Delete the revision, upgrade Crossplane and restore again, or write a Composition that does not require it, and its revision into " +
			"compositionRevisionRef of XOrder x [RequirementsLost]"}}
	}
	cases := map[string]planCase{
		"Whole":   {reason: "The revision has all of its fields.", snapshot: observed(requiring, bucket, all, xrd), want: ready},
		"Dropped": {reason: "An older Crossplane drops one of the fields.", snapshot: observed(requiring, bucket, some, xrd), want: lost("requiredSchemas of the step a")},
		"Emptied": {
			reason: "An older Crossplane drops all of the fields.", snapshot: observed(requiring, bucket, revision(xptest.RevisionName, `null`), xrd),
			want: lost("requiredResources of the step a, requiredSchemas of the step a"),
		},
		"Chosen": {reason: "The user has chosen a revision without these fields.", snapshot: observed(chosen, bucket, revision("chosen", `null`), xrd), want: other},
	}
	for name, tc := range cases {
		tc.ref = xp.RefTo(x)
		cases[name] = tc
	}
	runPlans(t, cases)
}

func TestNextWaitsForThePlatform(t *testing.T) {
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	xr := held(xptest.XR("x", xptest.Refs(bucket)), xptest.SeenPaused())
	pipeline := xptest.JSON(`{"spec":{"pipeline":[{"functionRef":{"name":"f"}}]}}`)
	native, revision := xptest.Revision(xptest.RevisionName, x), xptest.Revision(xptest.RevisionName, x, pipeline)
	xrd, running := definition("XOrder"), functionRevision("Active", "dns:///f")
	ready := outcome{Step: stepUnpause, Target: "XOrder x", Adopted: 1, Total: 1}
	wait := func(why ...string) outcome { return outcome{Adopted: 1, Total: 1, Waiting: why} }
	const dying = "its XRD xorders.example.org is being deleted, and Crossplane deletes the claims and XRs of its kinds, or waits until they are gone. It waits for its finalizer " +
		`keep. Wait until it is gone ("kubectl get xorders.example.org -A" shows what is left), then apply it again`
	reads := held(xptest.XR("x", xptest.Refs(bucket), xptest.RestoreFirst("environmentconfigs.apiextensions.crossplane.io//e")), xptest.SeenPaused())
	environment := xptest.Object("apiextensions.crossplane.io/v1beta1", "EnvironmentConfig", "", "e")
	cases := map[string]planCase{
		"Environment": {reason: "The EnvironmentConfig that the functions read exists.", snapshot: observed(reads, bucket, native, xrd, environment), want: ready},
		"NoEnvironment": {
			reason: "A function without its EnvironmentConfig can leave out composed resources.", snapshot: observed(reads, bucket, native, xrd),
			want: wait("EnvironmentConfig e: the pipeline reads it, and it is not in the cluster. Restore or create it [EnvironmentConfigMissing]"),
		},
		"EnvironmentUnknown": {reason: "The plan can't wait for an unreadable object.", snapshot: snapshot(reads, bucket, native), want: ready},
		"Ready":              {reason: "The whole platform is ready.", snapshot: observed(xr, bucket, revision, xrd, function(), running), want: ready},
		"Native":             {reason: "Native mode calls no function.", snapshot: observed(xr, bucket, native, xrd), want: ready},
		"NotKnown":           {reason: "The plan can't require a kind that Crossplane does not serve.", snapshot: snapshot(xr, bucket, revision), want: ready},
		"Healthy": {
			reason: "The platform is healthy.",
			snapshot: observed(xr, bucket, xptest.With(revision, condition("ValidPipeline", "True", "", "")), xrd, function(condition("Healthy", "True", "", "")),
				xptest.With(running, condition("RuntimeHealthy", "True", "", ""))),
			want: ready,
		},
		"NoXRD": {
			reason: "No controller reconciles the XR.", snapshot: observed(xr, bucket, native, definition("XOther")),
			want: wait("XOrder.example.org: no XRD in the cluster defines it. Restore the XRD, or install the package that has it [XRDMissing]"),
		},
		"XRDDeleting": {
			reason:   "The controller of a terminating XRD deletes the XR.",
			snapshot: observed(xr, bucket, native, xptest.With(xrd, xptest.Deleting(), xptest.Finalizers("keep"))),
			want:     wait("XOrder x: " + dying + ", and restore this again if it is gone [XRDTerminating]"),
		},
		"NotEstablished": {
			reason: "No controller reconciles the XR yet.", snapshot: observed(xr, bucket, native, xptest.With(xrd, condition("Established", "False", "Wait", "soon"))),
			want: wait("XRD xorders.example.org: it is not Established (Wait soon). Check that Crossplane runs [XRDNotEstablished]"),
		},
		"New": {
			reason: "Crossplane has not seen the XRD.", snapshot: observed(xr, bucket, native, xptest.With(xrd, xptest.Without("status"))),
			want: wait("XRD xorders.example.org: it is not Established. Check that Crossplane runs [XRDNotEstablished]"),
		},
		"NoFunction": {
			reason: "The pipeline would fail without the function.", snapshot: observed(xr, bucket, revision, xrd),
			want: wait("Function f: the pipeline of XOrder x calls it, and it is not installed. Install it [FunctionNotInstalled]"),
		},
		"Unhealthy": {
			reason: "The pipeline would fail with an unhealthy function.", snapshot: observed(xr, bucket, revision, xrd, function(condition("Healthy", "False", "Unhealthy", "no pod")), running),
			want: wait("Function f: it is not Healthy (Unhealthy no pod). See what its package needs [FunctionNotHealthy]"),
		},
		"RuntimeUnhealthy": {
			reason:   "The pipeline would fail if the revision has an unhealthy runtime.",
			snapshot: observed(xr, bucket, revision, xrd, function(), xptest.With(running, condition("RuntimeHealthy", "False", "", ""))),
			want:     wait("Function f: it is not Healthy. See what its package needs [FunctionNotHealthy]"),
		},
		"Inactive": {
			reason: "Crossplane calls only an active revision.", snapshot: observed(xr, bucket, revision, xrd, function(), functionRevision("Inactive", "dns:///f")),
			want: wait("Function f: it has no active revision. Activate one [FunctionNotActive]"),
		},
		"NoEndpoint": {
			reason: "Crossplane calls only a revision with an endpoint.", snapshot: observed(xr, bucket, revision, xrd, function(), functionRevision("Active", "")),
			want: wait("Function f: its active revision f-1 has no endpoint yet. Check that its Deployment runs [FunctionNotRunning]"),
		},
		"Invalid": {
			reason:   "Crossplane v2 refuses to reconcile with an invalid pipeline.",
			snapshot: observed(xr, bucket, xptest.With(revision, condition("ValidPipeline", "False", "MissingCapabilities", "f can't")), xrd, function(), running),
			want:     wait("CompositionRevision orders-1a2b3c: its pipeline is not valid: f can't. Install Functions with the capabilities that it needs [PipelineNotValid]"),
		},
		"OwnPause": {
			reason:   "An XR that its user keeps paused needs no platform.",
			snapshot: observed(held(xptest.XR("x", xptest.Refs(bucket), xptest.Annotated(xp.AnnotationPaused, "true"))), bucket, revision),
			want:     outcome{Step: stepRelease, Target: "XOrder x", Adopted: 1, Total: 1},
		},
	}
	for name, tc := range cases {
		tc.ref = xp.RefTo(x)
		cases[name] = tc
	}
	runPlans(t, cases)
}

// A composed resource can be an XR of a kind that is being deleted.
func TestNextNamesTerminatingXRDs(t *testing.T) {
	x := xptest.XR("x")
	child := xptest.XRV2("c", xptest.In(""))
	xr := held(xptest.XR("x", xptest.Refs(child)), xptest.SeenPaused())
	plan := Next(observed(xr, xptest.Revision(xptest.RevisionName, x), definition("XOrder"), definition("Order", xptest.Field("orders.example.org", "metadata", "name"), xptest.Deleting())), xp.RefTo(x))
	if len(plan.Waiting) != 2 || !strings.HasPrefix(plan.Waiting[0].Text, "Order.example.org, which it composes: its XRD") {
		t.Errorf("the terminating XRD must come first: %q", plan.Waiting)
	}
}

func TestPlatformNeeds(t *testing.T) {
	x := xptest.XR("x")
	pipeline := xptest.Revision(xptest.RevisionName, x, xptest.JSON(`{"spec":{"pipeline":[{"functionRef":{"name":"f"}}]}}`))
	definitions := []schema.GroupVersionKind{xp.KindDefinition}
	for name, tc := range map[string]struct {
		snapshot *Snapshot
		want     []schema.GroupVersionKind
	}{
		"Paused":   {snapshot: snapshot(held(x), xptest.Revision(xptest.RevisionName, x)), want: definitions},
		"Pipeline": {snapshot: snapshot(held(x), pipeline), want: append(definitions, xp.KindFunction, xp.KindFunctionRevision)},
		"Unpaused": {snapshot: snapshot(held(x, unpaused()), pipeline)},
		"Selects":  {snapshot: snapshot(held(xptest.XR("x", selecting("stable")), unpaused()), pipeline), want: []schema.GroupVersionKind{xp.KindRevision}},
		"OwnPause": {snapshot: snapshot(held(xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "true"))), pipeline)},
		"NotHeld":  {snapshot: snapshot(xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "true")), pipeline)},
		"Copy":     {snapshot: snapshot(copied(x), pipeline)},
		"MR":       {snapshot: snapshot(held(xptest.MR("b")), pipeline)},
	} {
		if diff := cmp.Diff(tc.want, tc.snapshot.PlatformNeeds()); diff != "" {
			t.Errorf("%s: only an object before its unpause needs the platform, and one that selects needs all revisions: -want, +got:\n%s", name, diff)
		}
	}
}
