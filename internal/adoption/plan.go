package adoption

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Plan is the next step for one XR, claim or MR.
type Plan struct {
	hold.Change

	// Also are changes to composed resources. Their order does not matter.
	Also []hold.Change
	// Done means that the XR is adopted, and neither it nor its claim is held.
	Done bool
	// Failed is why the XR can't be adopted, and the next step; zero if it can.
	Failed reason.Message
	// Lost means that it failed because another writer removed its hold, and it has lost something
	// by that.
	Lost bool
	// Unproven means that another writer may have removed its hold, and that the objects that would
	// prove it were not observed.
	Unproven bool
	// Adopted of Total composed resources are controlled by the XR and, if MRs, observed since the
	// restore. If the XR is Held they are only ready to be adopted.
	Adopted, Total int
	// Held means that the XR is held, as of this Plan.
	Held bool
	// Waiting are what the XR waits for, each with the object's name.
	Waiting []reason.Message
	// Stuck means that a reconcile which it waits for will probably not happen.
	Stuck bool
	// On are the kinds of the objects that it waits for.
	On []schema.GroupVersionKind
	// Pending are the objects that wait for a reconcile, which may never happen without a request.
	Pending []PendingReconcile
	// Remarks are warnings that nothing waits for, each with the next step.
	Remarks []reason.Message
	// Quarantine is why and how a user must end a quarantine; zero if there is none.
	Quarantine reason.Message
	// Ready means that it waits only for a user to release it.
	Ready bool
	// NextAt is when to plan again though nothing has changed; zero if never.
	NextAt time.Time
	// RestoredAt is when all items were restored, from Snapshot.RestoredAt.
	RestoredAt time.Time
	// Moving means that it waits for a controller's reaction, which usually takes moments. Blocked
	// means that something it waits for needs a user.
	Moving, Blocked bool
}

// Next returns the Plan for the XR, claim or MR that r names; tree.held has the steps of an XR. A
// panic becomes a failed Plan, so that one object can't stop the others.
func Next(s *Snapshot, r xp.Ref) (p Plan) {
	done := s.begin(r)
	defer func() {
		done()
		if cause := recover(); cause != nil {
			p = Plan{Failed: reason.PluginDefect.Messagef("%s: this plugin has failed to plan for it (%v), so it stays as it is. Report this, with the "+
				"object", r, cause)}
		}
	}()

	return next(s, r)
}

func next(s *Snapshot, r xp.Ref) Plan {
	u := s.Get(r)
	if t := (tree{snapshot: s}); u == nil && t.awaitKnown(r) {
		return t.plan
	}
	if why := s.leftBy(r); u == nil && !why.IsZero() {
		return Plan{Lost: true, Failed: why}
	}
	if u == nil {
		return Plan{Failed: reason.NotInCluster.Messagef("%s: it was not restored, or was deleted since. See the errors of the restore. An MR that was deleted "+
			"while it only observed has left its external resource behind: restore it again, and it manages that as before", r)}
	}
	if xp.IsClaim(u) && xp.IsComposite(u) {
		return Plan{Failed: reason.ClaimAndXR.Messagef("%s: it looks like a claim and like an XR, so it stays as it is. Find out who writes it, and remove its "+
			"finalizer %s or %s", r, xp.FinalizerClaim, xp.FinalizerComposite)}
	}
	h, p, ok := s.heldPlan(u)
	switch {
	case !ok:
		return p
	case h != nil && h.Freed:
		return Plan{Change: s.key.Lift(u, h, hold.StepFreed), Moving: true}
	case xp.IsClaim(u):
		return nextForClaim(s, xp.ClaimFrom(u), h)
	default:
		return nextForOther(s, u, h)
	}
}

// heldPlan returns the hold of u; nil if there is none. ok is false if the hold alone decides the
// Plan p: u stays as it is.
func (s *Snapshot) heldPlan(u *unstructured.Unstructured) (h *hold.Hold, p Plan, ok bool) {
	h, err := s.holdOf(u)
	switch {
	case err != nil:
		return nil, Plan{Failed: whyUnusable(u, err)}, false
	case h != nil && h.Clone != "":
		return nil, Plan{Failed: reason.Message{Text: fmt.Sprintf("%s stays held: %s", xp.String(u), h.Reason)}}, false
	case h != nil && h.Quarantine:
		return nil, s.quarantinePlan(u, h), false
	default:
		return h, Plan{}, true
	}
}

// whyUnusable returns why the mark of u can't be used, and the next step.
func whyUnusable(u *unstructured.Unstructured, err error) reason.Message {
	switch {
	case errors.Is(err, hold.ErrForged):
		return reason.MarkForged.Messagef("%s; it is ignored. If this plugin wrote it in another cluster, or before its key was lost, run: %s; if not, remove the "+
			"annotation", err, xp.NewCommand(xp.Program, "release", "--trust-marks").On(xp.RefTo(u).Path()))
	case errors.Is(err, hold.ErrNewer):
		return reason.MarkNewer.Messagef("%s stays held: %s; %s, and run: %s", xp.String(u), err, hold.HowToRead, xp.ReleaseCommand(xp.RefTo(u)))
	default:
		return reason.MarkUnreadable.Messagef("%s; remove the annotation, then run release, or restore again", err)
	}
}

func releaseByForce(u *unstructured.Unstructured) xp.Command {
	return xp.NewCommand(xp.Program, "release", "--force").On(xp.RefTo(u).Path())
}

// nextForOther plans for an XR, an MR or an object that was never reconciled, but not for a claim.
func nextForOther(s *Snapshot, u *unstructured.Unstructured, h *hold.Hold) Plan {
	if xp.IsManaged(u) {
		return nextForManaged(s, u, h)
	}
	if h != nil && !xp.IsComposite(u) {
		// Nothing shows that it is Crossplane's, since it was never reconciled before the backup.
		// So it has nothing to lose.
		return s.planManual(u, h, Plan{
			Change: s.key.Lift(u, h, "it was new when it was backed up; give its own settings back"), Moving: true,
		})
	}
	t := tree{snapshot: s, xr: xp.CompositeFrom(u), hold: h}
	if h == nil {
		return t.unclaimed(t.waitsForUserOnly(t.unheld()))
	}

	p := t.waitsForUserOnly(t.held(u))
	p.Held = true

	return p
}

// A tree is an XR, its hold and its Plan while that is made.
type tree struct {
	snapshot *Snapshot
	xr       xp.Composite
	hold     *hold.Hold
	plan     Plan
	// savedConditions are the conditions of each composed resource in the backup; nil until needed.
	savedConditions map[xp.ID]xp.TrueConditions
	// without are the references that are no longer waited for.
	without []string
	// unrestored are missing composed resources that Velero may not restore, so that Crossplane
	// makes them again.
	unrestored []xp.Ref
	// userWaits is how many of the Waiting are for a user.
	userWaits int
}

// wait adds a reason why the XR waits. moving means that a controller will end it, usually in
// moments.
func (t *tree) wait(moving bool, why reason.Message) {
	t.plan.Waiting = append(t.plan.Waiting, why)
	t.plan.Moving, t.plan.Blocked = t.plan.Moving || moving, t.plan.Blocked || !moving
}

// waitFor is wait for the object that r names.
func (t *tree) waitFor(r xp.Ref, moving bool, why reason.Message) {
	t.wait(moving, why)
	if gvk := t.snapshot.served(r); !slices.Contains(t.plan.On, gvk) {
		t.plan.On = append(t.plan.On, gvk)
	}
}

// remark adds a warning, if there is one.
func (t *tree) remark(why reason.Message) {
	if !why.IsZero() {
		t.plan.Remarks = append(t.plan.Remarks, why)
	}
}

func (t *tree) change(u *unstructured.Unstructured, patch map[string]any, step string) {
	t.plan.Change = hold.Change{Target: u, Patch: patch, Step: step}
}

// held plans for an XR that is held.
func (t *tree) held(u *unstructured.Unstructured) Plan {
	if u.GetDeletionTimestamp() != nil {
		return Plan{Failed: t.deleted(u)}
	}
	if why := t.claimDeleted(); !why.IsZero() {
		return Plan{Failed: why}
	}
	t.plan.Total = len(t.hold.Refs)
	if p, ok := t.interfered(); ok {
		return p
	}
	switch {
	case t.hold.OwnPause() && xp.IsPaused(u):
		t.checkComposed(false)
		t.checkStatus(u, t.hold)
	case xp.IsPaused(u):
		t.judgePaused(u)

		return t.plan
	default:
		t.checkComposed(false)
		t.checkRefs()
		t.checkReconciled(u)
		t.checkChoice()
	}
	if t.isReadyForRelease(u) && t.releaseClaim() {
		step := "adopted; give its own settings back"
		if len(t.without) > 0 {
			step += "; without " + strings.Join(t.without, ", ") + ", which it does not reference any more"
		}
		t.plan.Change = t.snapshot.key.Lift(u, t.following(t.hold.WithPauseOf(u)), step)
	}

	return t.plan
}

// judgePaused plans for a held XR that nothing has reconciled yet.
func (t *tree) judgePaused(u *unstructured.Unstructured) {
	t.holdClaimAgain()
	t.checkPlatform()
	t.checkComposed(true)
	t.checkVersions()
	t.checkStatus(u, t.hold)
	for _, why := range []reason.Message{t.snapshot.missingSecret(u, t.hold), t.snapshot.waitFromUID(t.hold)} {
		if !why.IsZero() {
			t.wait(false, why.About(xp.String(u)))
		}
	}
	t.checkOwner(u)
	follows := t.checkRevision()
	t.checkSeen(u)
	t.remark(changedFollowing(u, t.hold))
	if claim, h := t.heldClaim(); claim != nil {
		t.remark(changedFollowing(claim, h))
	}
	switch {
	case !t.isReadyForRelease(u):
	case follows != "":
		t.follow(u, follows)
	default:
		t.change(u, t.snapshot.key.Unpause(u, t.hold, t.snapshot.now), "let Crossplane reconcile it under the backed-up revision")
		t.plan.Warning = cmp.Or(changedFollowing(u, t.hold), t.madeAgain())
	}
}

// unheld plans for an XR that is not held: it existed before the restore, or is adopted.
func (t *tree) unheld() Plan {
	refs, _ := t.xr.ResourceRefs() // Only a held XR's refs are judged.
	t.plan.Total, t.plan.Adopted = len(refs), len(refs)
	released := t.releaseClaim()
	t.checkReleased(t.xr.Unstructured)
	t.plan.Done = released && len(t.plan.Waiting) == 0 && t.plan.Patch == nil

	return t.planUnheld(t.plan)
}
