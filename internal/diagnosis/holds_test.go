package diagnosis

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A next step is in one place of the report: neither in a reason beside it, nor in the problem of
// another object.
func TestEachNextStepOnce(t *testing.T) {
	x := xptest.XR("x")
	unnamed := func(o ...xptest.Option) *unstructured.Unstructured {
		return heldAs(xptest.MR("b", append([]xptest.Option{xptest.ControlledBy(x), xptest.Without("metadata", "annotations")}, o...)...), adoption.Hold{Identity: xp.Unknown})
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
		"ByHand":     {reason: "The reason of a hold that a user lifts has the command.", objects: []*unstructured.Unstructured{heldAs(x, adoption.Hold{ByHand: true})}, step: run},
		"Ready": {
			reason: "An object that waits only for a user has the command, too.", objects: []*unstructured.Unstructured{heldAs(x, adoption.Hold{ByHand: true})},
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
