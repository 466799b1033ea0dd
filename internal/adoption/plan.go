package adoption

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Change is one to an object.
type Change struct {
	// Target and Patch are the object to patch and the merge patch; nil if there is nothing to do now.
	Target *unstructured.Unstructured
	Patch  map[string]any
	// Step says what the patch does, for the log.
	Step string
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
	// Adopted of Total composed resources are controlled by the XR and, if they are MRs, observed since they were restored.
	Adopted, Total int
	// Waiting says what the XR waits for, each with the object's name.
	Waiting []string
	// Moving says that what it waits for is a controller's reaction, which usually takes moments.
	Moving bool
}

// Next plans for the XR that r names. The order is: everything it composes is there, its own and observed -> unpaused, still pinned ->
// reconciled, and references and controls what it did -> its claim released -> its own settings back.
func Next(w *World, r xp.Ref) Plan {
	u := w.Get(r)
	if u == nil {
		return Plan{Failed: fmt.Sprintf("%s does not exist: it was not restored, or was deleted since; see the errors of the restore", r)}
	}
	h, err := HoldOf(u)
	if err != nil {
		return Plan{Failed: err.Error() + "; correct or remove the annotation, then restore again"}
	}
	if h != nil && h.Clone != "" {
		return Plan{Failed: fmt.Sprintf("%s stays held: %s", r, h.Reason)}
	}
	if xp.IsClaim(u) {
		return nextForClaim(w, xp.ClaimFrom(u), h)
	}
	if xp.IsManaged(u) && !xp.IsComposite(u) {
		return nextForManaged(u, h)
	}
	t := tree{w: w, xr: xp.CompositeFrom(u), hold: h}
	if h == nil {
		return t.unheld()
	}

	return t.held(u)
}

// nextForClaim plans for a claim whose XR was not there when the claim was restored.
func nextForClaim(w *World, claim xp.Claim, h *Hold) Plan {
	if h == nil {
		return Plan{Done: true}
	}
	const stays = "%s stays held, so that Crossplane doesn't build a second tree for it: its XR %s "
	r, ok := claim.CompositeRef()
	if !ok {
		u := claim.Unstructured

		return Plan{Change: Change{Target: u, Patch: giveBack(u, h), Step: "it had no XR in the backup; give its own settings back"}}
	}
	u := w.Get(r)
	if u == nil {
		return Plan{Failed: fmt.Sprintf(stays+"was not restored; restore again from a backup that has the XR, without "+
			"--include-cluster-resources=false", xp.String(claim.Unstructured), r.Name)}
	}
	if !xp.Bound(claim, xp.CompositeFrom(u)) {
		return Plan{Failed: fmt.Sprintf(stays+"is not bound to it; correct the claimRef of %s or the resourceRef of the claim, then restore again",
			xp.String(claim.Unstructured), r.Name, r)}
	}

	return Next(w, r)
}

// nextForManaged plans for an MR that publishes connection details, and that no held XR composes.
func nextForManaged(u *unstructured.Unstructured, h *Hold) Plan {
	if h == nil {
		return Plan{Done: true}
	}

	return Plan{Change: letGo(u, h), Moving: true}
}

// letGo gives an MR that was held for its connection secret its own settings back. A plan is made when all items are restored.
func letGo(u *unstructured.Unstructured, h *Hold) Change {
	return Change{Target: u, Patch: giveBack(u, h), Step: "its connection secret is back; give its own settings back"}
}

// A tree is one XR with what belongs to it, while a Plan is made for it.
type tree struct {
	w    *World
	xr   xp.Composite
	hold *Hold
	plan Plan
	// without are the refs that nothing is waited for any more.
	without []string
}

func (t *tree) wait(moving bool, format string, args ...any) {
	t.plan.Waiting = append(t.plan.Waiting, fmt.Sprintf(format, args...))
	t.plan.Moving = t.plan.Moving || moving
}

func (t *tree) do(u *unstructured.Unstructured, patch map[string]any, step string) {
	t.plan.Change = Change{Target: u, Patch: patch, Step: step}
}

// held plans for an XR that is held.
func (t *tree) held(u *unstructured.Unstructured) Plan {
	if u.GetDeletionTimestamp() != nil {
		return Plan{Failed: fmt.Sprintf("%s is being deleted, and its hold keeps Crossplane from doing so; to let it go, with all that it composes, "+
			"remove its annotation %s", xp.String(u), xp.AnnotationPaused)}
	}
	t.plan.Total = len(t.hold.Refs)
	ownPause := t.hold.Paused != nil && *t.hold.Paused == "true"
	switch {
	case ownPause:
		t.checkComposed(false)
	case xp.IsPaused(u):
		t.checkComposed(true)
		t.checkRevision()
		t.checkSeen(u)
		if len(t.plan.Waiting) == 0 && t.plan.Failed == "" && !t.takeSecret(u) {
			t.do(u, unpause(u), "let Crossplane reconcile it under the backed-up revision")
		}

		return t.plan
	default:
		t.checkComposed(false)
		t.checkRefs()
		t.checkReconciled(u)
	}
	if len(t.plan.Waiting) == 0 && t.plan.Failed == "" && !t.takeSecret(u) && t.releaseClaim() {
		step := "adopted; give its own settings back"
		if len(t.without) > 0 {
			step += "; without " + strings.Join(t.without, ", ") + ", which it does not reference any more"
		}
		t.do(u, giveBack(u, t.hold), step)
	}

	return t.plan
}

// unheld plans for an XR that is not held: it was live before the restore, or is adopted already.
func (t *tree) unheld() Plan {
	refs, _ := t.xr.ResourceRefs() // An XR that is not held is not ours to judge.
	t.plan.Total, t.plan.Adopted = len(refs), len(refs)
	t.plan.Done = t.releaseClaim()

	return t.plan
}

// checkComposed counts what the XR controls, and waits for what is not there, is somebody else's, or, if observed is asked for, was not
// reconciled by its own controller since it was restored: a function that decides by the status of an MR must find it again.
func (t *tree) checkComposed(observed bool) {
	listed, err := t.listed()
	for _, r := range t.hold.Refs {
		u := t.w.Get(r)
		switch {
		case u == nil && err == nil && !listed[r.ID()]:
			// A person took it off the list, or deleted it when Crossplane had done so, as they are told to.
			t.without = append(t.without, r.String())
			t.plan.Total--
		case u == nil:
			t.checkMissing(r)
		case u.GetDeletionTimestamp() != nil:
			t.wait(false, "%s: it is being deleted; see what its finalizers wait for, then restore it again", r)
		default:
			if !t.letGo(r, u) {
				t.checkControlled(r, u, observed)
			}
		}
	}
}

// letGo plans the end of the hold of an MR and tells whether there is one.
func (t *tree) letGo(r xp.Ref, u *unstructured.Unstructured) bool {
	h, err := HoldOf(u)
	if err != nil || h == nil || h.Clone != "" || !IsMarked(u) {
		return false
	}
	// The refs in a mark are what somebody wrote into it. What the XR controls is its own; what nobody does has an operation of its own.
	switch c, controlled := xp.Controller(u); {
	case controlled && c.UID != t.xr.GetUID():
		return false
	case controlled:
		t.plan.Also = append(t.plan.Also, letGo(u, h))
	}
	t.wait(true, "%s: it was held until its connection secret was back", r)

	return true
}

func (t *tree) checkMissing(r xp.Ref) {
	if gk := r.GroupVersionKind().GroupKind(); t.w.unserved[gk] {
		t.wait(false, "%s: its kind is not served; install the provider or XRD of %s", r, gk)

		return
	}
	t.wait(false, "%s: it was not restored; restore it, or remove it from the resourceRefs of %s to have it made anew", r, xp.String(t.xr.Unstructured))
}

func (t *tree) checkControlled(r xp.Ref, u *unstructured.Unstructured, observed bool) {
	c, ok := xp.Controller(u)
	switch {
	case ok && c.UID != t.xr.GetUID():
		t.wait(false, "%s: it is controlled by %s %s (UID %s), not by this XR", r, c.Kind, c.Name, c.UID)
	case !ok && !xp.IsPaused(t.xr.Unstructured):
		t.wait(true, "%s: Crossplane has not taken control of it", r)
	case observed && !t.checkObserved(r, u):
	case ok:
		t.plan.Adopted++
	}
}

// checkObserved tells whether a composed resource was reconciled since it was restored.
func (t *tree) checkObserved(r xp.Ref, u *unstructured.Unstructured) bool {
	if h, err := HoldOf(u); err == nil && h != nil && h.Clone != "" {
		t.plan.Failed = fmt.Sprintf("%s stays held: %s: %s", xp.String(t.xr.Unstructured), r, h.Reason)

		return false
	}
	switch {
	case xp.IsComposite(u):
		if h, err := HoldOf(u); h != nil || err != nil {
			t.wait(true, "%s: this composed XR is not adopted yet", r)

			return false
		}
	case xp.IsManaged(u) && !xp.IsPaused(u):
		switch c, ok := xp.ConditionOf(u, xp.ConditionSynced); {
		case !ok, c.Reason == xp.ReasonReconcilePaused:
			t.wait(true, "%s: its provider has not observed it yet", r)

			return false
		case c.Status != "True":
			t.wait(false, "%s: its provider can't reconcile it: %s", r, c.Message)

			return false
		}
	}

	return true
}

func (t *tree) checkRevision() {
	if t.hold.Pinned && t.w.Get(revisionRef(t.xr)) == nil {
		t.wait(false, "CompositionRevision %s: it is neither in the cluster nor was it restored; restore it, or set another compositionRevisionRef on %s",
			t.xr.Revision(), xp.String(t.xr.Unstructured))
	}
}

// checkSeen waits until Crossplane has said of a paused object that it is paused. That it did is what makes its next word a proof: status
// is not restored, or is as old as the backup.
func (t *tree) checkSeen(u *unstructured.Unstructured) {
	if c, ok := xp.ConditionOf(u, xp.ConditionSynced); !ok || c.Reason != xp.ReasonReconcilePaused {
		t.wait(true, "Crossplane to notice that %s is paused; is Crossplane running, and its XRD Established?", xp.String(u))
	}
}

// checkReconciled waits until Crossplane has reconciled an object that checkSeen held for.
func (t *tree) checkReconciled(u *unstructured.Unstructured) {
	switch c, ok := xp.ConditionOf(u, xp.ConditionSynced); {
	case !ok, c.Reason == xp.ReasonReconcilePaused:
		t.wait(true, "Crossplane to reconcile %s", xp.String(u))
	case c.Status != "True":
		t.wait(true, "%s: Crossplane can't reconcile it: %s", xp.String(u), c.Message)
	}
}

// checkRefs waits until the XR references everything that it did in the backup. More than that is what a Composition that was in the middle
// of its work composes next.
func (t *tree) checkRefs() {
	listed, err := t.listed()
	if err != nil {
		t.wait(false, "%s", err)

		return
	}
	for _, r := range t.hold.Refs {
		if !listed[r.ID()] && t.w.Get(r) != nil {
			t.wait(false, "%s: the XR no longer references it; put it back into its resourceRefs, or delete it with deletionPolicy Orphan", r)
		}
	}
}

// takeSecret plans to make u the controller of the Secret that it publishes its connection details in, and tells whether that is to do. Crossplane
// takes control of one without a controller only if what it publishes differs (crossplane internal/controller/apiextensions/composite/api.go,
// PublishConnection), and a claim refuses to read one that its XR does not control. One that was live before the restore can be like that.
func (t *tree) takeSecret(u *unstructured.Unstructured) bool {
	r, ok := xp.SecretRef(u)
	if !ok {
		return false
	}
	s := t.w.Get(r)
	if s == nil || !xp.IsConnectionSecret(s) || s.GetDeletionTimestamp() != nil {
		return false
	}
	if _, controlled := xp.Controller(s); controlled {
		return false
	}
	t.do(s, control(u, s), "make "+xp.String(u)+" its controller again")

	return true
}

// listed returns what the XR references now.
func (t *tree) listed() (map[xp.ID]bool, error) {
	refs, err := t.xr.ResourceRefs()
	listed := map[xp.ID]bool{}
	for _, r := range refs {
		listed[r.ID()] = true
	}

	return listed, err
}

// releaseClaim plans the release of the XR's claim and tells whether there is nothing left to do for it. Only a claim that this plugin
// held must be proven to be reconciled, so its XR stays marked until then.
func (t *tree) releaseClaim() bool {
	r, ok := t.xr.ClaimRef()
	if !ok {
		return true
	}
	claim := t.w.Get(r)
	if claim == nil || !xp.Bound(xp.ClaimFrom(claim), t.xr) {
		// Any XR can name any claim; one that is held for its own XR must stay so.
		return true
	}
	h, err := HoldOf(claim)
	if err != nil {
		t.wait(false, "%s", err)

		return false
	}
	if h != nil {
		t.checkSeen(claim)
		if len(t.plan.Waiting) == 0 && !t.takeSecret(claim) {
			t.do(claim, giveBack(claim, h), "its XR is adopted; give its own settings back")
		}

		return false
	}
	if t.hold != nil && !xp.IsPaused(claim) {
		t.checkReconciled(claim)
	}

	return len(t.plan.Waiting) == 0
}
