package adoption

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Crossplane v2 refuses a revision in mode Resources. Its XRs follow a converted revision, if that
// would replace none of their composed resources.
func TestNextFollowsAnotherRevision(t *testing.T) {
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled(), xptest.Annotated(xp.AnnotationResourceName, "bucket"))
	nameless := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	following := xptest.XR("x", xptest.Refs(bucket))
	xr := held(following, xptest.SeenPaused())
	manual := held(xptest.With(following, xptest.Field("Manual", "spec", "compositionUpdatePolicy")), xptest.SeenPaused())
	composition := xptest.Composition(xptest.CompositionName, x)
	converted := xptest.Revision("orders-2", x, xptest.ControlledBy(composition), xptest.Field(int64(2), "spec", "revision"),
		xptest.JSON(`{"spec":{"pipeline":[{"input":{"resources":[{"name":"network"},{"name":"bucket"}]}}]}}`))
	other := xptest.With(converted, xptest.JSON(`{"spec":{"pipeline":[{"input":{"resources":[{"name":"network"},{}, 7]}}, 7, {"input":{"resources":7}}]}}`))
	const lost = "CompositionRevision orders-1a2b3c: it is not in the cluster. " +
		"Restore it, or set another compositionRevisionRef on XOrder x. " +
		`If it was in mode Resources, which Crossplane v2 does not have, apply what "crossplane beta convert pipeline-composition" of v1.20 makes of its ` +
		"Composition orders"
	wait := func(why string) outcome {
		return outcome{Adopted: 1, Total: 1, Waiting: []string{lost + why + " [CompositionRevisionMissing]"}}
	}
	runPlans(t, map[string]planCase{
		"Converted": {
			reason: "The converted revision names every composed resource.", snapshot: snapshot(xr, bucket, converted), ref: xp.RefTo(x),
			want: outcome{Step: "its revision is gone; have it follow the one that it would get, which names all that it composes", Target: "XOrder x", Adopted: 1, Total: 1},
		},
		"Invalid": {
			reason: "The XR must not follow a revision that Crossplane can't run.", ref: xp.RefTo(x), snapshot: snapshot(xr, bucket, xptest.With(converted, xptest.JSON(
				`{"status":{"conditions":[{"type":"ValidPipeline","status":"False","reason":"MissingCapabilities","message":"f can't"}]}}`))),
			want: outcome{Adopted: 1, Total: 1, Waiting: []string{
				"CompositionRevision orders-2: its pipeline is not valid: f can't. Install Functions with the capabilities that it needs [PipelineNotValid]",
			}},
		},
		"OtherKind": {
			reason: "Crossplane would replace the resource by one of the other kind.", ref: xp.RefTo(x), snapshot: snapshot(xr, bucket, xptest.With(converted, xptest.JSON(
				`{"spec":{"pipeline":[{"input":{"resources":[{"name":"bucket","base":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Store"}}]}}]}}`))),
			want: wait(", and it continues. CompositionRevision orders-2 does not name Bucket b, which it composes"),
		},
		"None": {reason: "The message explains how to convert the Composition.", snapshot: snapshot(xr, bucket), ref: xp.RefTo(x), want: wait(", and it continues")},
		"Other": {
			reason: "Crossplane would delete a resource that the revision does not name.", snapshot: snapshot(xr, bucket, other), ref: xp.RefTo(x),
			want: wait(", and it continues. CompositionRevision orders-2 does not name Bucket b, which it composes"),
		},
		"Nameless": {
			reason:   "Conversion names unnamed templates, and Crossplane would then create those resources again.",
			snapshot: snapshot(xr, nameless, converted), ref: xp.RefTo(x),
			want: wait(", and it continues. CompositionRevision orders-2 does not name Bucket b, which it composes"),
		},
		"Stray": {
			reason:   "No XR follows a revision without its Composition.",
			snapshot: snapshot(xr, bucket, xptest.With(converted, xptest.Without("metadata", "ownerReferences"))),
			ref:      xp.RefTo(x),
			want:     wait(", and it continues"),
		},
		"Manual": {
			reason: "With policy Manual the user selects the revision.", snapshot: snapshot(manual, bucket, converted), ref: xp.RefTo(x),
			want: wait(", and set its revision there"),
		},
	})
}

func TestFollowLetsCrossplaneWriteTheRevision(t *testing.T) {
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled(), xptest.Annotated(xp.AnnotationResourceName, "bucket"))
	xr := held(xptest.XR("x", xptest.Refs(bucket)), xptest.SeenPaused())
	converted := xptest.Revision("orders-2", x, xptest.ControlledBy(xptest.Composition(xptest.CompositionName, x)),
		xptest.JSON(`{"spec":{"revision":1,"pipeline":[{"input":{"resources":[{"name":"bucket"}]}}]}}`))
	p := Next(snapshot(xr, bucket, converted), xp.RefTo(x))
	got, there, err := unstructured.NestedFieldNoCopy(p.Patch, "spec", "compositionRevisionRef")
	if got != nil || !there || err != nil {
		t.Fatalf("the reference to the deleted revision must be removed: %v", p.Patch)
	}
	after := xptest.Merge(xr, p.Patch)
	if p = Next(snapshot(after, bucket, converted), xp.RefTo(x)); p.Step != stepUnpause || !p.Warning.IsZero() || len(p.Remarks) > 0 {
		t.Errorf("the XR must be unpaused next, without a warning: %+v", p)
	}
}
