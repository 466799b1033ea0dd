package live

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A takenStep is a step that was taken on an object.
type takenStep struct {
	uid  types.UID
	step string
}

// stepRelease is the step that removes a hold, whatever the text of the step is.
const stepRelease = "lift"

func stepOf(change adoption.Change) takenStep {
	s := takenStep{uid: change.Target.GetUID(), step: change.Step}
	if change.Lifts() {
		s.step = stepRelease
	}

	return s
}

// hasTaken reports whether this Adopter has taken a step on the object with the UID.
func (a *Adopter) hasTaken(uid types.UID, step string) bool {
	_, taken := a.takenSteps.Load(takenStep{uid: uid, step: step})

	return taken
}

// dropTaken returns the Plan without steps that were already taken. Another writer undoes them, and
// could do so as often as this plugin repeats them. A hold that is on again after its release fails
// the plan; any other step waits for the next poll.
func (p *poll) dropTaken(plan adoption.Plan) adoption.Plan {
	all := append(slices.Clone(plan.Also), plan.Change)
	plan.Also, plan.Change = nil, adoption.Change{}
	for n, c := range all {
		switch {
		case c.Patch == nil:
		case p.isHeldAgain(c.Target), p.hasTaken(c.Target.GetUID(), stepOf(c).step):
			plan = p.addUndone(plan, c)
		case n < len(all)-1:
			plan.Also = append(plan.Also, c)
		default:
			plan.Change = c
		}
	}

	return plan
}

// isHeldAgain reports whether an object has a mark although its hold was released.
func (p *poll) isHeldAgain(u *unstructured.Unstructured) bool {
	return p.hasTaken(u.GetUID(), stepRelease) && xp.HasAnnotation(u, adoption.AnnotationHold)
}

// addUndone adds to a Plan that another writer has undone a change.
func (p *poll) addUndone(plan adoption.Plan, c adoption.Change) adoption.Plan {
	target := xp.RefTo(c.Target)
	if p.isHeldAgain(c.Target) {
		plan.Failed = reason.HoldAddedAgain.Messagef("%s: it was released, and another writer has put its hold on again. Find out who writes the annotation %s "+
			"(kubectl get --show-managed-fields), stop that writer, then run: %s", target, adoption.AnnotationHold, xp.ReleaseCommand(target))

		return plan
	}
	plan.Waiting = append(slices.Clone(plan.Waiting), reason.ChangeUndone.Messagef("%s: another writer has undone a change (%s). Find out who writes it "+
		"(kubectl get --show-managed-fields), and stop that writer", target, c.Step))
	plan.Blocked = true

	return plan
}

// logForged logs each mark in the Snapshot that this plugin did not write.
func (p *poll) logForged(o *observer) {
	for _, err := range o.snapshot.Forged() {
		if _, seen := p.loggedForged.LoadOrStore(err.Error(), true); !seen {
			p.log.WithError(err).WithField("reason", reason.MarkForged).Warn("The mark of a hold is ignored, because this plugin did not write it")
		}
	}
}
