package adoption

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// When Crossplane reconciles an XR with another UID, a Composition that makes an external-name from
// it names another external resource.
func TestNextAwaitsUserForIdentityFromUID(t *testing.T) {
	x := xptest.XR("x")
	from := &FromUID{XR: xp.RefTo(x), UID: "old", Fields: []string{"metadata.annotations[crossplane.io/external-name]"}}
	mr := xptest.MR("db", xptest.ControlledBy(x), xptest.Reconciled())
	named := heldFor(mr, Hold{FromUID: from, Reason: ReasonFromUID(from)})
	paused := held(xptest.XR("x", xptest.Refs(mr)), xptest.SeenPaused())
	released := xptest.XR("x", xptest.Refs(mr), xptest.Reconciled())
	revision := xptest.Revision(xptest.RevisionName, x)
	ownerless := heldFor(mr, Hold{FromUID: from, Owner: new(xp.RefTo(x))})
	why := "Bucket db: " + from.Why().String()
	nested := heldFor(xptest.XR("n", xptest.ControlledBy(x)), Hold{FromUID: from}, xptest.SeenPaused())
	runPlans(t, map[string]planCase{
		"Held": {
			reason: "The XR must not be released by itself.", snapshot: snapshot(paused, named, revision), ref: xp.RefTo(x),
			want: outcome{Total: 1, Waiting: []string{why}},
		},
		"OfAnotherOperation": {
			reason: "Nor the MR alone: the mark is what the XR waits for. A user releases the XR.", snapshot: snapshot(paused, named, revision), ref: xp.RefTo(mr),
			want: outcome{Waiting: []string{why}, Moving: true},
		},
		"XRMissing": {reason: "The XR may still come.", snapshot: snapshot(named), ref: xp.RefTo(mr), want: outcome{Waiting: []string{why}}},
		"Forced": {
			reason: "A user has released the XR.", snapshot: snapshot(released, named, revision), ref: xp.RefTo(mr), want: outcome{Step: stepLetGo, Target: "Bucket db", Moving: true},
		},
		"NeverHeld": {
			reason: "The XR was live and Crossplane reconciled it during the restore.", ref: xp.RefTo(mr), want: outcome{Waiting: []string{why}, Moving: true},
			snapshot: snapshot(released, xptest.With(ownerless, xptest.ControlledBy(x)), revision),
		},
		"Named": {
			reason: "Without a pipeline Crossplane composes another XR under another name.", snapshot: snapshot(paused, nested, revision), ref: xp.RefTo(nested),
			want: outcome{Waiting: []string{"XOrder n: " + from.Why().String()}},
		},
	})
	t.Run("Force", func(t *testing.T) {
		for _, u := range []*unstructured.Unstructured{paused, named} {
			f := AssessForce(snapshot(paused, named, revision), xp.RefTo(u))
			if f.Patch == nil || !slices.ContainsFunc(f.Risks, func(m reason.Message) bool { return m.Code == reason.UIDInIdentity }) {
				t.Errorf("release --force must name the risk; got %+v", f)
			}
		}
	})
}
