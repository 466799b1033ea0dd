package adoption

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
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
	xptest.Value(hold.Put(requiring, hold.Hold{Restore: restoreName, Since: cameAt, Required: []string{"requiredResources of the step a", "requiredSchemas of the step a"}}))
	revision := func(name, requirements string) *unstructured.Unstructured {
		return xptest.Revision(name, x, xptest.JSON(`{"spec":{"pipeline":[{"step":"a","requirements":`+requirements+`}]}}`))
	}
	all, some := revision(xptest.RevisionName, `{"requiredResources":[{}],"requiredSchemas":[{}]}`), revision(xptest.RevisionName, `{"requiredResources":[{}]}`)
	chosen := xptest.With(requiring, xptest.Field("chosen", "spec", "compositionRevisionRef", "name"))
	xrd := definition("XOrder")
	runPlans(t, x, map[string]planCase{
		"Whole": {reason: "The revision has all of its fields.", want: "1/1; unpause XOrder x", snapshot: observed(requiring, bucket, all, xrd)},
		"Dropped": {
			reason: "An older Crossplane drops one of the fields.", want: "1/1; waits: CompositionRevision orders-1a2b3c RequirementsLost", says: "requires: requiredSchemas of the step a.",
			snapshot: observed(requiring, bucket, some, xrd),
		},
		"Emptied": {
			reason: "An older Crossplane drops all of the fields.", want: "1/1; waits: CompositionRevision orders-1a2b3c RequirementsLost",
			says: "requires: requiredResources of the step a, requiredSchemas of the step a.", snapshot: observed(requiring, bucket, revision(xptest.RevisionName, `null`), xrd),
		},
		"Chosen": {
			reason: "The user has chosen a revision without these fields.", want: "1/1; unpause XOrder x; warns: XOrder x CompositionChanged; remarks: XOrder x CompositionChanged",
			snapshot: observed(chosen, bucket, revision("chosen", `null`), xrd),
		},
	})
}

func TestNextWaitsForThePlatform(t *testing.T) {
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	xr := held(xptest.XR("x", xptest.Refs(bucket)), xptest.SeenPaused())
	pipeline := xptest.JSON(`{"spec":{"pipeline":[{"functionRef":{"name":"f"}}]}}`)
	native, revision := xptest.Revision(xptest.RevisionName, x), xptest.Revision(xptest.RevisionName, x, pipeline)
	xrd, running := definition("XOrder"), functionRevision("Active", "dns:///f")
	reads := held(xptest.XR("x", xptest.Refs(bucket), xptest.RestoreFirst("environmentconfigs.apiextensions.crossplane.io//e")), xptest.SeenPaused())
	environment := xptest.Object("apiextensions.crossplane.io/v1beta1", "EnvironmentConfig", "", "e")
	runPlans(t, x, map[string]planCase{
		"Environment": {reason: "The EnvironmentConfig that the functions read exists.", want: "1/1; unpause XOrder x", snapshot: observed(reads, bucket, native, xrd, environment)},
		"NoEnvironment": {
			reason: "A function without its EnvironmentConfig can leave out composed resources.", want: "1/1; waits: EnvironmentConfig e EnvironmentConfigMissing",
			snapshot: observed(reads, bucket, native, xrd),
		},
		"EnvironmentUnknown": {reason: "The plan can't wait for an unreadable object.", want: "1/1; unpause XOrder x", snapshot: snapshot(reads, bucket, native)},
		"Ready":              {reason: "The whole platform is ready.", want: "1/1; unpause XOrder x", snapshot: observed(xr, bucket, revision, xrd, function(), running)},
		"NotKnown":           {reason: "The plan can't require a kind that Crossplane does not serve.", want: "1/1; unpause XOrder x", snapshot: snapshot(xr, bucket, revision)},
		"Healthy": {
			reason: "The platform is healthy.", want: "1/1; unpause XOrder x",
			snapshot: observed(xr, bucket, xptest.With(revision, condition("ValidPipeline", "True", "", "")), xrd, function(condition("Healthy", "True", "", "")), xptest.With(running, condition("RuntimeHealthy", "True", "", ""))),
		},
		"NoXRD": {reason: "No controller reconciles the XR.", want: "1/1; waits: XOrder.example.org XRDMissing", snapshot: observed(xr, bucket, native, definition("XOther"))},
		"XRDDeleting": {
			reason: "The controller of a terminating XRD deletes the XR.", want: "1/1; waits: XOrder x XRDTerminating", says: "waits for its finalizer keep",
			snapshot: observed(xr, bucket, native, xptest.With(xrd, xptest.Deleting(), xptest.Finalizers("keep"))),
		},
		"NotEstablished": {
			reason: "No controller reconciles the XR yet.", want: "1/1; waits: XRD xorders.example.org XRDNotEstablished", says: "(Wait soon)",
			snapshot: observed(xr, bucket, native, xptest.With(xrd, condition("Established", "False", "Wait", "soon"))),
		},
		"New": {
			reason: "Crossplane has not seen the XRD.", want: "1/1; waits: XRD xorders.example.org XRDNotEstablished",
			snapshot: observed(xr, bucket, native, xptest.With(xrd, xptest.Without("status"))),
		},
		"NoFunction": {reason: "The pipeline would fail without the function.", want: "1/1; waits: Function f FunctionNotInstalled", snapshot: observed(xr, bucket, revision, xrd)},
		"Unhealthy": {
			reason: "The pipeline would fail with an unhealthy function.", want: "1/1; waits: Function f FunctionNotHealthy", says: "(Unhealthy no pod)",
			snapshot: observed(xr, bucket, revision, xrd, function(condition("Healthy", "False", "Unhealthy", "no pod")), running),
		},
		"RuntimeUnhealthy": {
			reason: "The pipeline would fail if the revision has an unhealthy runtime.", want: "1/1; waits: Function f FunctionNotHealthy",
			snapshot: observed(xr, bucket, revision, xrd, function(), xptest.With(running, condition("RuntimeHealthy", "False", "", ""))),
		},
		"Inactive": {
			reason: "Crossplane calls only an active revision.", want: "1/1; waits: Function f FunctionNotActive",
			snapshot: observed(xr, bucket, revision, xrd, function(), functionRevision("Inactive", "dns:///f")),
		},
		"NoEndpoint": {
			reason: "Crossplane calls only a revision with an endpoint.", want: "1/1; waits: Function f FunctionNotRunning",
			snapshot: observed(xr, bucket, revision, xrd, function(), functionRevision("Active", "")),
		},
		"Invalid": {
			reason: "Crossplane v2 refuses to reconcile with an invalid pipeline.", want: "1/1; waits: CompositionRevision orders-1a2b3c PipelineNotValid", says: "f can't",
			snapshot: observed(xr, bucket, xptest.With(revision, condition("ValidPipeline", "False", "MissingCapabilities", "f can't")), xrd, function(), running),
		},
		"OwnPause": {
			reason: "An XR that its user keeps paused needs no platform.", want: "1/1; release XOrder x",
			snapshot: observed(held(xptest.XR("x", xptest.Refs(bucket), xptest.Annotated(xp.AnnotationPaused, "true"))), bucket, revision),
		},
	})
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
		"Unpaused": {snapshot: snapshot(held(x, xptest.Unpaused()), pipeline)},
		"Selects":  {snapshot: snapshot(held(xptest.XR("x", selecting("stable")), xptest.Unpaused()), pipeline), want: []schema.GroupVersionKind{xp.KindRevision}},
		"OwnPause": {snapshot: snapshot(held(xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "true"))), pipeline)},
		"NotHeld":  {snapshot: snapshot(xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "true")), pipeline)},
		"Copy":     {snapshot: snapshot(copied(x), pipeline)},
		"MR":       {snapshot: snapshot(held(xptest.MR("b")), pipeline)},
	} {
		xptest.Same(t, tc.want, tc.snapshot.PlatformNeeds(), name+": only an object before its unpause needs the platform, and one that selects needs all revisions")
	}
}

// Crossplane reads a composed resource in the version of its reference, and does not reconcile the
// XR if that is not served.
func TestNextNamesVersionsThatAreNotServed(t *testing.T) {
	x := xptest.XR("x")
	mr, revision := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled()), xptest.Revision(xptest.RevisionName, x)
	old := xptest.With(mr, xptest.Field("cloud.example.org/v1alpha0", "apiVersion"))
	version := func(v string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "cloud.example.org", Version: v, Kind: "Bucket"}
	}
	retired := func(objects ...*unstructured.Unstructured) *Snapshot {
		w := snapshot(objects...)
		w.AddRetired(version("v1alpha0"), version("v1alpha1"))

		return w
	}
	lists := func(u *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
		return held(xptest.XR("x", append(o, xptest.Refs(u))...), xptest.SeenPaused())
	}
	corrected := xptest.With(lists(old), xptest.Refs(mr))
	unreadable := retired(lists(old), revision)
	unreadable.AddUnreadable(version("v1alpha1"), "forbidden")
	runPlans(t, x, map[string]planCase{
		"Named": {
			reason: "The resource exists, and only its reference is wrong.", want: "1/1; waits: Bucket b VersionNotServed",
			says: "have it as cloud.example.org/v1alpha0, which is not served. Write cloud.example.org/v1alpha1", snapshot: retired(lists(old), mr, revision),
		},
		"Claimed": {
			reason: "Crossplane copies the claim's revision to its XR as soon as the claim is released.", want: "1/1; waits: Bucket b VersionNotServed", says: "claim OrderClaim team-a/c",
			snapshot: retired(lists(old, xptest.ClaimedBy(xptest.Claim("c"))), mr, revision),
		},
		"Corrected": {reason: "The mark keeps the old version for ever.", want: "1/1; unpause XOrder x", snapshot: retired(corrected, mr, revision)},
		"Served":    {reason: "The version is served again.", want: "1/1; unpause XOrder x", snapshot: snapshot(lists(old), mr, revision)},
		"OwnPause": {
			reason: "Crossplane does not read the resources of a paused XR.", want: "1/1; release XOrder x",
			snapshot: retired(lists(old, xptest.Annotated(xp.AnnotationPaused, "true")), mr, revision),
		},
		"AsBroken": {
			reason: "Crossplane could not read the resource in the source either.", want: "1/1; unpause XOrder x",
			snapshot: retired(func() *unstructured.Unstructured {
				u := xptest.XR("x", xptest.Refs(old))
				xptest.Value(hold.Put(u, hold.Hold{Restore: restoreName, Since: restoredAt, Failing: "ReconcileError 1"}))

				return xptest.With(u, xptest.SeenPaused())
			}(), mr, revision),
		},
		"Unreadable": {reason: "The served versions can't be read.", want: "0/1; waits: Bucket b NotRead", snapshot: unreadable},
	})
}

// Crossplane runs only revisions for the version to which the XRD refers.
func TestNextNamesCompositionsForOtherVersions(t *testing.T) {
	x, c := xptest.XR("x"), xptest.Claim("c")
	mr := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	old, next := xptest.Revision(xptest.RevisionName, x), xptest.Revision("next-1", xptest.With(x, xptest.Field("example.org/v1beta1", "apiVersion")))
	xr := func(o ...xptest.Option) *unstructured.Unstructured {
		return held(xptest.XR("x", append(o, xptest.Refs(mr))...), xptest.SeenPaused())
	}
	refers := func(versions string) *unstructured.Unstructured {
		return definition("XOrder", xptest.JSON(`{"spec":{"versions":`+versions+`}}`))
	}
	newer := refers(`[7,{"name":"v1alpha1"},{"name":"v1beta1","referenceable":true}]`)
	failing := func() *unstructured.Unstructured {
		u := xptest.XR("x", xptest.Refs(mr))
		xptest.Value(hold.Put(u, hold.Hold{Restore: restoreName, Since: restoredAt, Failing: "ReconcileError 1"}))

		return xptest.With(u, xptest.SeenPaused())
	}
	runPlans(t, x, map[string]planCase{
		"Newer": {
			reason: "Crossplane would refuse the revision for ever.", want: "1/1; waits: CompositionRevision orders-1a2b3c RevisionNotCompatible",
			says: "is for example.org/v1alpha1, and Crossplane reads XOrder x as example.org/v1beta1", snapshot: snapshot(xr(), mr, old, newer),
		},
		"Claimed": {
			reason: "Crossplane copies the claim's Composition to its XR, which it finds by claimRef.", want: "1/1; waits: CompositionRevision orders-1a2b3c RevisionNotCompatible",
			says: "claimRef", snapshot: snapshot(xr(xptest.ClaimedBy(c)), mr, old, newer),
		},
		"Other": {
			reason: "The XR had this Composition in the backup.", want: "1/1; unpause XOrder x",
			snapshot: snapshot(xr(xptest.Field("next-1", "spec", "compositionRevisionRef", "name")), mr, next, newer),
		},
		"Same": {
			reason: "The XRD refers to the same version as in the backup.", want: "1/1; unpause XOrder x",
			snapshot: snapshot(xr(), mr, old, refers(`[{"name":"v1alpha1","referenceable":true}]`)),
		},
		"AsBroken": {reason: "Crossplane could not run the revision in the source either.", want: "1/1; unpause XOrder x", snapshot: snapshot(failing(), mr, old, newer)},
	})
}
