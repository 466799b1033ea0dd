package adoption

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

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
	const setCondition = "Bucket b: the resourceRefs of XOrder x have it as cloud.example.org/v1alpha0, which is not served. Write cloud.example.org/v1alpha1 there, and " +
		"into compositionRevisionRef a revision of its Composition with that version: kubectl edit XOrder.example.org x [VersionNotServed]"
	unpauses := outcome{Step: stepUnpause, Target: "XOrder x", Adopted: 1, Total: 1}
	corrected := xptest.With(lists(old), xptest.Refs(mr))
	unreadable := retired(lists(old), revision)
	unreadable.AddUnreadable(version("v1alpha1"), "forbidden")
	runPlans(t, map[string]planCase{
		"Named": {
			reason: "The resource exists, and only its reference is wrong.", snapshot: retired(lists(old), mr, revision), ref: xp.RefTo(x),
			want: outcome{Adopted: 1, Total: 1, Waiting: []string{setCondition}},
		},
		"Claimed": {
			reason: "Crossplane copies the claim's revision to its XR as soon as the claim is released.", ref: xp.RefTo(x),
			snapshot: retired(lists(old, xptest.ClaimedBy(xptest.Claim("c"))), mr, revision),
			want:     outcome{Adopted: 1, Total: 1, Waiting: []string{strings.Replace(setCondition, " version: ", " version, before that into that of its claim "+xp.String(xptest.Claim("c"))+", since Crossplane copies it: ", 1)}},
		},
		"Corrected": {reason: "The mark keeps the old version for ever.", snapshot: retired(corrected, mr, revision), ref: xp.RefTo(x), want: unpauses},
		"Served":    {reason: "The version is served again.", snapshot: snapshot(lists(old), mr, revision), ref: xp.RefTo(x), want: unpauses},
		"OwnPause": {
			reason: "Crossplane does not read the resources of a paused XR.", snapshot: retired(lists(old, xptest.Annotated(xp.AnnotationPaused, "true")), mr, revision), ref: xp.RefTo(x),
			want: outcome{Step: stepRelease, Target: "XOrder x", Adopted: 1, Total: 1},
		},
		"AsBroken": {
			reason: "Crossplane could not read the resource in the source either.", ref: xp.RefTo(x), want: unpauses,
			snapshot: retired(func() *unstructured.Unstructured {
				u := xptest.XR("x", xptest.Refs(old))
				if _, err := Put(u, Hold{Restore: restoreName, Since: restoredAt, Failing: "ReconcileError 1"}); err != nil {
					t.Fatal(err)
				}

				return xptest.With(u, xptest.SeenPaused())
			}(), mr, revision),
		},
		"Missing": {
			reason: "The resource did not come back at all.", snapshot: retired(lists(old), revision), ref: xp.RefTo(x),
			want: outcome{Total: 1, Waiting: []string{"Bucket b: it is not in the cluster. Restore it, or remove it from the resourceRefs of XOrder x, and Crossplane composes another [NotInCluster]"}},
		},
		"Unreadable": {
			reason: "The served versions can't be read.", snapshot: unreadable, ref: xp.RefTo(x),
			want: outcome{Total: 1, Waiting: []string{"Bucket b: it can't be read: forbidden. Check that the API server serves its kind, and that the user who runs this may list " +
				"and patch Bucket.cloud.example.org [NotRead]"}},
		},
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
	setCondition := func(of, claim string) string {
		return "CompositionRevision orders-1a2b3c: it is for example.org/v1alpha1, and Crossplane reads XOrder x as example.org/v1beta1, as the XRD " +
			"xorders.example.org says. Write a Composition for that, with the same resources, into the compositionRef" + of + " of the XR, and its revision " +
			"into compositionRevisionRef" + claim + ", or make the XRD refer to example.org/v1alpha1 again [RevisionNotCompatible]"
	}
	unpauses := outcome{Step: stepUnpause, Target: "XOrder x", Adopted: 1, Total: 1}
	failing := func() *unstructured.Unstructured {
		u := xptest.XR("x", xptest.Refs(mr))
		if _, err := Put(u, Hold{Restore: restoreName, Since: restoredAt, Failing: "ReconcileError 1"}); err != nil {
			t.Fatal(err)
		}

		return xptest.With(u, xptest.SeenPaused())
	}
	runPlans(t, map[string]planCase{
		"Newer": {
			reason: "Crossplane would refuse the revision for ever.", snapshot: snapshot(xr(), mr, old, newer), ref: xp.RefTo(x),
			want: outcome{Adopted: 1, Total: 1, Waiting: []string{setCondition("", "")}},
		},
		"Claimed": {
			reason: "Crossplane copies the claim's Composition to its XR, which it finds by claimRef.", ref: xp.RefTo(x),
			snapshot: snapshot(xr(xptest.ClaimedBy(c)), mr, old, newer),
			want:     outcome{Adopted: 1, Total: 1, Waiting: []string{setCondition(" of its claim "+xp.String(c)+" and then", ", and that version into its claimRef")}},
		},
		"Other": {
			reason: "The XR had this Composition in the backup.", snapshot: snapshot(xr(xptest.Field("next-1", "spec", "compositionRevisionRef", "name")), mr, next, newer),
			ref: xp.RefTo(x), want: unpauses,
		},
		"Same": {
			reason: "The XRD refers to the same version as in the backup.", ref: xp.RefTo(x), want: unpauses,
			snapshot: snapshot(xr(), mr, old, refers(`[{"name":"v1alpha1","referenceable":true}]`)),
		},
		"Silent": {
			reason: "An XRD without a referenceable version is not an XRD.", ref: xp.RefTo(x), want: unpauses,
			snapshot: snapshot(xr(), mr, old, refers(`[{"referenceable":true}]`)),
		},
		"AsBroken": {reason: "Crossplane could not run the revision in the source either.", snapshot: snapshot(failing(), mr, old, newer), ref: xp.RefTo(x), want: unpauses},
	})
}
