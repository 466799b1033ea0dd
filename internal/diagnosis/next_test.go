package diagnosis

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// The next step depends on why no XR, or another one, controls a resource. After a hold was taken off
// and the XR composed new resources, the cluster shows which Restore it was, and which resource
// replaced which.
func TestUncontrolled(t *testing.T) {
	x := xptest.XR("x", xptest.Reconciled())
	nested := xptest.XR("nested", deleted(time.Second))
	labelled, restored := xptest.Labelled(xp.LabelComposite, "x"), xptest.Labelled(xp.LabelRestore, "monday")
	place := xptest.Annotated(xp.AnnotationResourceName, "b")
	lists := xptest.With(x, xptest.Refs(xptest.MR("b")))
	const back, later, earlier = "2026-01-02T11:00:00Z", "2026-01-02T11:05:00Z", "2026-01-01T11:00:00Z"
	bucket := func(name, resource, at string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.MR(name, append([]xptest.Option{
			xptest.ControlledBy(x), xptest.Annotated(xp.AnnotationResourceName, resource), xptest.Field(at, "metadata", "creationTimestamp"), ready("True"),
		}, o...)...)
	}
	dropped := func(lost, anew *unstructured.Unstructured) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{xptest.With(x, xptest.Refs(anew)), lost, anew}
	}
	const brought, replaced = "the restore monday brought it back", "the restore monday brought it back, and XOrder x lists Bucket new in its place"
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		code    reason.Code
		// has and lacks are in the reason and the next step, and not in them.
		has, lacks string
	}{
		"XRRefused": {
			reason: "The restore refused the XR or left it out, and another restore adopts what it composes.", code: reason.Orphaned,
			objects: []*unstructured.Unstructured{xptest.MR("b", labelled, place, restored)},
			has:     "restore the same backup again: the XR adopts it. The errors of the restore have the reason: velero restore describe --details monday", lacks: "add it to",
		},
		"NestedRefused": {
			reason: "The XR that composed it is a nested one, and the root is live.", code: reason.Orphaned,
			objects: []*unstructured.Unstructured{x, heldAs(xptest.MR("b", labelled, place, restored), hold.Hold{Owner: new(xp.RefTo(nested))})},
			has:     "restore the same backup again: the XR adopts it", lacks: "add it to",
		},
		"NotRestored": {
			reason: "Without a restore there may be no backup.", code: reason.Orphaned, objects: []*unstructured.Unstructured{xptest.MR("b", labelled, place)},
			has: "add it to the resourceRefs", lacks: "restore",
		},
		"XRLive": {
			reason: "The XR is back, so another restore leaves it as it is.", code: reason.Orphaned, objects: []*unstructured.Unstructured{x, xptest.MR("b", labelled, place, restored)},
			has: "add it to the resourceRefs", lacks: "restore the same backup",
		},
		"MovedUp": {
			reason: "A restore follows a link to what a nested XR in deletion controls.", code: reason.ControlledByAnother,
			objects: []*unstructured.Unstructured{lists, nested, xptest.MR("b", xptest.ControlledBy(nested), labelled)}, has: "makes XOrder x its controller", lacks: "ignore",
		},
		"OfAnother": {
			reason: "Nothing follows a link to what another XR controls.", code: reason.ControlledByAnother,
			objects: []*unstructured.Unstructured{lists, xptest.XR("nested"), xptest.MR("b", xptest.ControlledBy(nested), labelled)}, has: "ignore such a link", lacks: "makes",
		},
		"Controlled": {
			reason: "The restore brought the resource back before the XR dropped it.", code: reason.Orphaned, objects: dropped(bucket("b", "r", back, restored), bucket("new", "r", later)),
			has: replaced, lacks: "its label",
		},
		"Labelled": {
			reason: "The restore brought the resource back after the XR dropped it.", code: reason.Orphaned, has: replaced, lacks: "controls it",
			objects: dropped(bucket("b", "r", back, restored, xptest.Without("metadata", "ownerReferences")), bucket("new", "r", later)),
		},
		"AnotherPlace": {
			reason: "A resource of another template does not replace the lost one.", code: reason.Orphaned, has: brought, lacks: "Bucket new",
			objects: dropped(bucket("b", "r", back, restored), bucket("new", "other", later)),
		},
		"Older": {
			reason: "A resource that is older than the restore does not replace the lost one.", code: reason.Orphaned, has: brought, lacks: "Bucket new",
			objects: dropped(bucket("b", "r", back, restored), bucket("new", "r", earlier)),
		},
		"Restored": {
			reason: "A resource of the same restore does not replace the lost one: it was an orphan in the backup.", code: reason.Orphaned, has: brought, lacks: "Bucket new",
			objects: dropped(bucket("b", "r", back, restored), bucket("new", "r", later, restored)),
		},
		"NoRestore": {
			reason: "Without a restore the reason must not mention one.", code: reason.Orphaned, objects: dropped(bucket("b", "r", back), bucket("new", "r", later)),
			has: "XOrder x controls it and does not list it", lacks: "restore",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var all []string
			for _, p := range validated(objectsOf(tc.objects...)) {
				if p.Code == tc.code && p.Object.Name == "b" {
					all = append(all, p.Reason, p.Next)
				}
			}
			next := strings.Join(all, " ")
			if !strings.Contains(next, tc.has) || strings.Contains(next, tc.lacks) {
				t.Errorf("%s\ngot %q, want %q in it and not %q", tc.reason, next, tc.has, tc.lacks)
			}
		})
	}
}

// A next step is in one place of the report: neither in a reason beside it, nor in the problem of
// another object.
func TestEachNextStepOnce(t *testing.T) {
	x := xptest.XR("x")
	unnamed := func(o ...xptest.Option) *unstructured.Unstructured {
		return heldAs(xptest.MR("b", append([]xptest.Option{xptest.ControlledBy(x), xptest.Without("metadata", "annotations")}, o...)...), hold.Hold{Identity: xp.Unknown})
	}
	pending := xptest.Annotated(xp.AnnotationCreatePending, ago(time.Hour))
	waits := func(m reason.Message) map[xp.ID]adoption.Plan {
		return map[xp.ID]adoption.Plan{xp.RefTo(x).ID(): {Waiting: []reason.Message{m}}}
	}
	run := xp.Program + " release --restore velero/r"
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		plans   map[xp.ID]adoption.Plan
		// step may be in the report once.
		step string
	}{
		"Quarantine": {reason: "The reason of a quarantine has its end.", objects: []*unstructured.Unstructured{quarantined(x)}, step: run},
		"ByHand":     {reason: "The reason of a hold that a user lifts has the command.", objects: []*unstructured.Unstructured{heldAs(x, hold.Hold{ByHand: true})}, step: run},
		"Ready": {
			reason: "An object that waits only for a user has the command, too.", objects: []*unstructured.Unstructured{heldAs(x, hold.Hold{ByHand: true})},
			plans: waits(reason.AwaitingUser.Messagef("XOrder x: it waits for nothing but a user who releases it; run: %s", run)), step: run,
		},
		"CreatePending": {
			reason: "The MR has the problem, and the XR waits for it.", objects: []*unstructured.Unstructured{held(xptest.With(x, xptest.Refs(unnamed(pending)))), unnamed(pending)},
			plans: waits(adoption.WhyHeld(xp.CreatePending, "").About("Bucket b")), step: "ook for it in the cloud",
		},
		"IdentityMissing": {
			reason: "The step of the MR is complete.", objects: []*unstructured.Unstructured{held(xptest.With(x, xptest.Refs(unnamed()))), unnamed()},
			plans: waits(adoption.WhyHeld(xp.Unknown, "").About("Bucket b")), step: "--force",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var all []string
			for _, p := range Validate(objectsOf(tc.objects...), ClusterState{Now: now, Plans: tc.plans, Restores: map[string]string{"velero/r": "WaitingForPluginOperations"}}) {
				all = append(all, p.Reason+"\n"+p.Next)
			}
			if text := strings.Join(all, "\n"); strings.Count(text, tc.step) != 1 {
				t.Errorf("%s\n%q must be there once:\n%s", tc.reason, tc.step, text)
			}
		})
	}
}
