package adoption

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Change is one to an object.
type Change struct {
	// Target and Patch are the object to patch and the merge patch; nil if there is nothing to do
	// now.
	Target *unstructured.Unstructured
	Patch  map[string]any
	// Configuration is what this plugin applies server-side instead, as Applied returns it; nil if
	// it can't, or nobody has asked yet.
	Configuration map[string]any
	// Step says what the patch does, for the log.
	Step string
	// Manager is under whose name the API server is to have it in managedFields; "" stands for
	// FieldManager.
	Manager string
	// Defaults are those fields of the patch that nobody managed and that become what the API
	// server has for them by default.
	Defaults [][]string
	// Warning is what is to be told of it in an Event, when it is made; "" if it is as it should
	// be.
	Warning string
}

// Lifts reports whether the change takes a hold off.
func (c Change) Lifts() bool {
	mark, changed := c.mark()

	return changed && mark == nil
}

// Marks reports whether the change writes a mark.
func (c Change) Marks() bool {
	mark, _ := c.mark()

	return mark != nil
}

func (c Change) mark() (mark any, changed bool) {
	metadata, _ := c.Patch["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	mark, changed = annotations[AnnotationHold]

	return mark, changed
}

// A Plan is the next step for one XR.
type Plan struct {
	Change

	// Also are changes to what the XR composes, which don't wait for one another.
	Also []Change
	// Done says that the XR is adopted and neither it nor its claim is held.
	Done bool
	// Failed says why the XR can't be adopted at all, and the next step; "" if it can.
	Failed string
	// Lost says that it has failed since somebody else has taken its hold off, and it has lost
	// something by that.
	Lost bool
	// Unproven says that somebody else may have taken its hold off, and that nobody has looked yet
	// for what tells.
	Unproven bool
	// Adopted of Total composed resources are controlled by the XR and, if they are MRs, observed
	// since they were restored.
	Adopted, Total int
	// Waiting says what the XR waits for, each with the object's name.
	Waiting []string
	// Causes are what the same is in general, without names and what controllers say. As long as
	// they are the same, nobody needs to be told again.
	Causes []string
	// On are the kinds of what it waits for, as far as it is something that the XR composes.
	On []schema.GroupVersionKind
	// Pending is what waits for a word of Crossplane's, which may never come by itself.
	Pending []PendingReconcile
	// Remarks are what a person should know though nothing waits for it, each with the next step.
	Remarks []string
	// Quarantine says that it waits for a person to end a quarantine, and how; "" if it doesn't.
	Quarantine string
	// Ready says that it waits for nothing but a person who lets it go.
	Ready bool
	// NextAt is when another Plan may follow though nothing has changed; zero if none does.
	NextAt time.Time
	// RestoredAt is when the restore had brought all of it back, as Snapshot.RestoredAt tells.
	RestoredAt time.Time
	// WithoutComposed says that only the XR itself was looked at, so that nothing is known of what
	// it composes.
	WithoutComposed bool
	// Moving says that what it waits for is a controller's reaction, which usually takes moments,
	// and Blocked that some of it does not come by itself.
	Moving, Blocked bool
}

// Next plans for the XR that r names. The order is: everything it composes is there, its own and
// observed -> unpaused, still pinned -> reconciled, and references and controls what it did -> its
// claim released -> its own settings back. A panic is a Plan that has failed, so that no object can
// keep the others from going on.
func Next(w *Snapshot, r xp.Ref) (p Plan) {
	done := w.begin(r)
	defer func() {
		done()
		if cause := recover(); cause != nil {
			p = Plan{Failed: fmt.Sprintf("cannot tell what comes next for %s, because of a defect of this plugin (%v): it stays as it is; report this, with "+
				"the object", r, cause)}
		}
	}()

	return next(w, r)
}

func next(w *Snapshot, r xp.Ref) Plan {
	u := w.Get(r)
	if t := (tree{snapshot: w}); u == nil && t.awaitKnown(r) {
		return t.plan
	}
	if u == nil {
		return Plan{Failed: fmt.Sprintf("%s does not exist: it was not restored, or was deleted since; see the errors of the restore", r)}
	}
	if xp.IsClaim(u) && xp.IsComposite(u) {
		return Plan{Failed: fmt.Sprintf("%s has what makes a claim and what makes an XR, and nothing can be both: nothing is done about it; find out who has "+
			"written it, and remove its finalizer %s or %s", r, xp.FinalizerClaim, xp.FinalizerComposite)}
	}
	h, p, ok := w.heldPlan(u)
	switch {
	case !ok:
		return p
	case h != nil && h.Freed:
		return w.freed(u, h)
	case xp.IsClaim(u):
		return nextForClaim(w, xp.ClaimFrom(u), h)
	default:
		return nextForOther(w, u, h)
	}
}

// freed plans for what only the mark is left on.
func (s *Snapshot) freed(u *unstructured.Unstructured, h *Hold) Plan {
	return Plan{Change: s.key.lift(u, h, stepFreed), Moving: true}
}

// stepFreed is the step that takes the mark off what has its own settings back.
const stepFreed = "its own settings are back; take the mark of its hold off"

// heldPlan returns the hold of an object; ok is false if that keeps it as it is, and then the Plan
// says why.
func (s *Snapshot) heldPlan(u *unstructured.Unstructured) (h *Hold, p Plan, ok bool) {
	h, err := s.holdOf(u)
	switch {
	case errors.Is(err, ErrForged):
		return nil, Plan{Failed: err.Error() + "; " + howToClear(u)}, false
	case errors.Is(err, ErrNewer):
		return nil, Plan{Failed: fmt.Sprintf("%s stays held: %s; %s, and run: %s", xp.String(u), err, HowToRead, xp.ReleaseCommand(xp.RefTo(u)))}, false
	case err != nil:
		return nil, Plan{Failed: err.Error() + "; remove the annotation, then run release, or restore again"}, false
	case h != nil && h.Clone != "":
		return nil, Plan{Failed: fmt.Sprintf("%s stays held: %s", xp.String(u), h.Reason)}, false
	case h != nil && h.Quarantine:
		return nil, s.keptIn(u, h), false
	default:
		return h, Plan{}, true
	}
}

// howToClear says what to do about a mark that nobody can rely on.
func howToClear(u *unstructured.Unstructured) string {
	return "nothing is done on its word. If this plugin has put it on in another cluster, or before its key was lost, run: " +
		xp.NewCommand(xp.Program, "release", "--trust-marks").On(xp.RefTo(u).Path()).String() + "; if not, remove the annotation"
}

// releaseByForce is the command that lifts the hold of an object at once.
func releaseByForce(u *unstructured.Unstructured) xp.Command {
	return xp.NewCommand(xp.Program, "release", "--force").On(xp.RefTo(u).Path())
}

// nextForOther plans for an XR, an MR, or what nothing has reconciled yet, but for a claim.
func nextForOther(w *Snapshot, u *unstructured.Unstructured, h *Hold) Plan {
	if xp.IsManaged(u) && !xp.IsComposite(u) {
		return nextForManaged(w, u, h)
	}
	if h != nil && !xp.IsComposite(u) {
		// It looks like nothing of Crossplane's, since nobody had reconciled it when it was backed
		// up. So there is nothing to lose.
		return w.planByHand(u, h, Plan{
			Change: w.key.lift(u, h, "it was new when it was backed up; give its own settings back"), Moving: true,
		})
	}
	t := tree{snapshot: w, xr: xp.CompositeFrom(u), hold: h}
	if h == nil {
		return t.unclaimed(t.waitsForPersonOnly(t.unheld()))
	}

	return t.waitsForPersonOnly(t.held(u))
}

// A tree is one XR with what belongs to it, while a Plan is made for it.
type tree struct {
	snapshot *Snapshot
	xr       xp.Composite
	hold     *Hold
	plan     Plan
	// savedConditions is how well each composed resource was, nil until somebody asks.
	savedConditions map[xp.ID]xp.TrueConditions
	// without are the refs that nothing is waited for any more.
	without []string
	// byHand is how much of what it waits for is a person.
	byHand int
}

func (t *tree) wait(moving bool, format string, args ...any) {
	cause := format
	if len(args) > 0 {
		if r, ok := args[0].(xp.Ref); ok {
			cause = r.Kind + " " + format
			if gvk := t.snapshot.served(r); !slices.Contains(t.plan.On, gvk) {
				t.plan.On = append(t.plan.On, gvk)
			}
		}
	}
	t.plan.Causes = append(t.plan.Causes, cause)
	t.plan.Waiting = append(t.plan.Waiting, fmt.Sprintf(format, args...))
	t.plan.Moving, t.plan.Blocked = t.plan.Moving || moving, t.plan.Blocked || !moving
}

func (t *tree) change(u *unstructured.Unstructured, patch map[string]any, step string) {
	t.plan.Change = Change{Target: u, Patch: patch, Step: step}
}

// held plans for an XR that is held.
func (t *tree) held(u *unstructured.Unstructured) Plan {
	if u.GetDeletionTimestamp() != nil {
		return Plan{Failed: t.deleted(u)}
	}
	if why := t.claimDeleted(); why != "" {
		return Plan{Failed: why}
	}
	if t.snapshot.skipsComposed(t.snapshot.observedOf(u)) {
		return t.planWithoutComposed(u)
	}
	t.plan.Total = len(t.hold.Refs)
	if p, ok := t.interfered(u); ok {
		return p
	}
	switch {
	case t.hold.ownPause() && xp.IsPaused(u):
		t.checkComposed(false)
		t.checkStatus(u)
	case xp.IsPaused(u):
		t.holdClaimAgain()
		t.checkPlatform()
		t.checkComposed(true)
		t.checkVersions()
		t.checkStatus(u)
		t.checkSecret(u)
		follows := t.checkRevision()
		t.checkSeen(u)
		t.remarkFollowing(u)
		switch {
		case !t.isReadyForRelease(u):
		case follows != "":
			t.follow(u, follows)
		default:
			t.change(u, t.snapshot.key.unpause(u, t.hold, t.snapshot.now), "let Crossplane reconcile it under the backed-up revision")
			t.plan.Warning = changedFollowing(u, t.hold)
		}

		return t.plan
	default:
		t.checkComposed(false)
		t.checkRefs()
		t.checkReconciled(u)
	}
	if t.isReadyForRelease(u) && t.releaseClaim() {
		step := "adopted; give its own settings back"
		if len(t.without) > 0 {
			step += "; without " + strings.Join(t.without, ", ") + ", which it does not reference any more"
		}
		t.plan.Change = t.snapshot.key.lift(u, t.following(t.hold.withPauseOf(u)), step)
	}

	return t.plan
}

// unheld plans for an XR that is not held: it was live before the restore, or is adopted already.
func (t *tree) unheld() Plan {
	refs, _ := t.xr.ResourceRefs() // An XR that is not held is not ours to judge.
	t.plan.Total, t.plan.Adopted = len(refs), len(refs)
	released := t.releaseClaim()
	t.checkReleased(t.xr.Unstructured)
	t.plan.Done = released && len(t.plan.Waiting) == 0 && t.plan.Patch == nil

	return t.planUnheld(t.plan)
}
