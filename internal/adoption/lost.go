package adoption

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// lostNext is the next step when something was made anew.
const lostNext = "nothing of that is deleted by itself. Have them stop, and choose which are to stay: docs/gitops.md, \"The hold was taken off\""

// planUnheld is the Plan for an XR that is not held and that a restore has created, if whoever asks
// has not lifted its hold; p is its Plan if it was. That it has all that it lists proves nothing,
// since what it lists is what Crossplane has made of it.
func (t *tree) planUnheld(p Plan) Plan {
	w, u := t.snapshot, t.xr.Unstructured
	if !w.isSuspect(u) {
		return p
	}
	asked, own := w.isRequested(u), w.isOfRestore(u)
	if !asked && !own {
		return p // It is for the Restore that has created it to judge.
	}
	lost, anew, known := w.replaced(t.xr, false)
	switch {
	case asked && w.lacksItsHold(u, lost):
		if c, ok := w.holdMissing(u, w.investigation.Restore); ok {
			return Plan{Change: c, Moving: true, Total: p.Total}
		}
	case len(lost) > 0 && known:
		return lostPlan(u, "%s was reconciled without its hold before it was adopted: %s. Crossplane has made anew: %s; and the XR does not reference any more "+
			"what was "+
			"restored: %s; %s", someOf(anew), someOf(lost), lostNext)
	case !asked && (!known || !isReconciledHere(u)):
		p.Unproven, p.Change = true, Change{} // Whose operation has ended, or who was never held, is not asked for, and costs nobody a list.

		return p
	}
	if p.Patch == nil {
		if p.Change = unpin(u); p.Patch != nil {
			p.Done, p.Moving = false, true
		}
	}

	return p
}

// lacksItsHold reports whether what has lost its hold can have it back: Crossplane has done nothing
// with it, or it is to be in quarantine and has lost nothing.
func (s *Snapshot) lacksItsHold(u *unstructured.Unstructured, lost []xp.Ref) bool {
	return !isReconciledHere(u) || s.isQuarantineBroken(u) && len(lost) == 0
}

// lostBefore is the Plan for an XR of which the hold was put on again while Crossplane was
// reconciling it: it lists what it was about to make. lost is false if it lists all that was
// restored of what it composed.
func (t *tree) lostBefore() (p Plan, lost bool) {
	if !t.hold.Again {
		return Plan{}, false
	}
	back, anew, known := t.snapshot.replaced(t.xr, true)
	if len(back) == 0 || !known {
		return Plan{}, false
	}

	return Plan{Lost: true, Total: t.plan.Total, Failed: fmt.Sprintf("%s stays held: when its hold had been taken off Crossplane replaced in its resourceRefs "+
		"what was restored: %s; by what it was to make anew: %s. Put the former back into its resourceRefs in place of the latter, delete the latter where it "+
		"exists, and run: %s",
		xp.String(t.xr.Unstructured), someOf(back), someOf(anew), xp.ReleaseCommand(xp.RefTo(t.xr.Unstructured)))}, true
}

// lostPlan is the Plan for what has lost something since somebody has taken its hold off. Of that
// it says first who it is and who has probably done that.
func lostPlan(u *unstructured.Unstructured, format string, args ...any) Plan {
	return Plan{Lost: true, Change: unpin(u), Failed: fmt.Sprintf(format, append([]any{xp.String(u), removedBy(u)}, args...)...)}
}

// replaced returns what restores have brought back of what an XR composed and that it does not list
// any more, and what it lists in its place that is younger than the XR and that no restore has
// created; with missing also what does not exist yet. It is not known if somebody has to look
// first.
func (s *Snapshot) replaced(xr xp.Composite, missing bool) (lost, anew []xp.Ref, known bool) {
	s.addReadOfAll()
	refs, err := xr.ResourceRefs()
	if err != nil {
		return nil, nil, true // As it is, nobody can tell.
	}
	listed, kinds := map[xp.ID]bool{}, map[schema.GroupKind]bool{}
	known = true
	for _, r := range refs {
		listed[r.ID()], kinds[r.GroupVersionKind().GroupKind()] = true, true
		known = known && s.isListed(r)
	}
	candidates := slices.DeleteFunc(s.unlisted(xr, listed), func(b broughtBack) bool { return !kinds[b.GroupKind] })
	if len(candidates) == 0 {
		return nil, nil, known
	}
	for _, r := range refs {
		known = known && (s.get(r.ID()) != nil || s.isWhole(r))
		p, ok := s.replacementAt(xr, r, missing)
		took := false
		for _, b := range candidates {
			if ok && p.isSame(b.place) {
				took = true
				if !slices.Contains(lost, b.Ref) {
					lost = append(lost, b.Ref)
				}
			}
		}
		if took {
			anew = append(anew, r)
		}
	}
	slices.SortFunc(lost, xp.Ref.Compare)

	return lost, anew, known
}

// replacementAt returns in which place something is that an XR lists, if it was made anew; with
// missing also if it does not exist.
func (s *Snapshot) replacementAt(xr xp.Composite, r xp.Ref, missing bool) (p place, ok bool) {
	u := s.get(r.ID())
	if u == nil {
		return place{GroupKind: r.GroupVersionKind().GroupKind()}, missing && s.isWhole(r)
	}

	return placeOf(u), isReplacement(s, xr.Unstructured, u)
}

// isReconciledHere reports whether Crossplane has reconciled an object since it was created here.
// Status may be that of the backup, and then it is older.
func isReconciledHere(u *unstructured.Unstructured) bool {
	c, ok := xp.ConditionOf(u, xp.ConditionSynced)
	switch {
	case !ok || c.Reason == xp.ReasonReconcilePaused:
		return false
	case c.Since.IsZero():
		return isCurrent(u, c)
	default:
		return !c.Since.Before(u.GetCreationTimestamp().Time)
	}
}

// interfered is the Plan for a held XR if somebody has taken its hold off for a while, or that of
// its claim, or the pause; ok is false if nobody has, or it did no harm.
func (t *tree) interfered(u *unstructured.Unstructured) (p Plan, ok bool) {
	if p, ok = t.overtaken(); ok {
		return p, ok
	}
	if p, ok = t.lostBefore(); ok {
		return p, ok
	}
	if p, ok = t.lostClaim(); ok {
		return p, ok
	}

	return t.withoutPause(u)
}

// lostClaim is the Plan for a held XR whose claim came back with it, was reconciled without its
// hold and without its reference to the XR, as one is that was replaced, and has another XR now;
// lost is false if it has not.
func (t *tree) lostClaim() (p Plan, lost bool) {
	claim, came := t.claimOfThisRestore()
	if !came {
		return Plan{}, false
	}
	r, named := xp.ClaimFrom(claim).CompositeRef()
	if !named || r.Name == t.xr.GetName() {
		return Plan{}, false
	}
	if other := t.snapshot.Get(r); other == nil || !isReplacement(t.snapshot, t.xr.Unstructured, other) {
		return Plan{}, false // It is bound to one that was there, or came back too.
	}

	return Plan{Lost: true, Total: t.plan.Total, Failed: fmt.Sprintf("%s has no claim any more: %s was reconciled without its hold: %s. Crossplane has made "+
		"another XR for it: %s; %s", xp.String(t.xr.Unstructured), xp.String(claim), removedBy(claim), r, lostNext)}, true
}

// claimOfThisRestore returns the claim that the XR names, if it was created since the Restore began
// that asks.
func (t *tree) claimOfThisRestore() (claim *unstructured.Unstructured, ok bool) {
	r, named := t.xr.ClaimRef()
	if !named || t.snapshot.investigation == nil {
		return nil, false
	}
	claim = t.snapshot.Get(r)
	if claim == nil || xp.HasAnnotation(claim, AnnotationHold) {
		return nil, false
	}
	began := t.snapshot.investigation.Started

	return claim, t.snapshot.restored[claim.GetUID()] || !began.IsZero() && !claim.GetCreationTimestamp().Time.Before(began)
}

// planUnheldClaim is the Plan for a claim that is not held, as judged is for XRs. What its XR lists
// is judged with that.
func (s *Snapshot) planUnheldClaim(claim xp.Claim, p Plan) Plan {
	u := claim.Unstructured
	if !s.isSuspect(u) || !s.isRequested(u) {
		return p
	}
	r, bound := claim.CompositeRef()
	_, unknown := s.isUnknown(r)
	xr := s.Get(r)
	switch {
	case !bound || unknown:
	case xr == nil && !isReconciledHere(u):
		if c, ok := s.holdMissing(u, s.investigation.Restore); ok {
			return Plan{Change: c, Moving: true}
		}
	case xr == nil:
	case isReplacement(s, u, xr) && xp.Bound(claim, xp.CompositeFrom(xr)):

		return lostPlan(u, "%s was reconciled without its hold: %s. Crossplane has made another XR for it: %s; "+
			"that of the backup was not restored, and nobody has what "+
			"it composed; %s", r, lostNext)
	default:
		// If its XR is held, Crossplane carries over what the claim says and composes nothing. The
		// XR's plan goes on with both.
		if isOurPause(u) {
			t := tree{snapshot: s}
			t.wait(true, "%s: its hold was taken off, and its pause was not; %s goes on with both", xp.RefTo(u), r)

			return t.plan
		}
	}
	if p.Patch == nil {
		if p.Change = unpin(u); p.Patch != nil {
			p.Done, p.Moving = false, true
		}
	}

	return p
}

// isReplacement reports whether no restore has created an object, and it is younger than another.
func isReplacement(w *Snapshot, than, u *unstructured.Unstructured) bool {
	return !w.restored[u.GetUID()] && !u.GetCreationTimestamp().Time.Before(than.GetCreationTimestamp().Time)
}

// planUnheldManaged is the Plan for an MR that is not held, as judged is for XRs: only creating
// another external resource does harm.
func (s *Snapshot) planUnheldManaged(u *unstructured.Unstructured) Plan {
	if !s.isSuspect(u) || !s.isRequested(u) {
		return Plan{Done: true}
	}
	if p, ok := createdAnew(u); ok {
		return p
	}
	if p, ok := s.heldAgain(u); ok {
		return p
	}
	if c, ok := dropObservePolicy(u); ok {
		return Plan{Change: c, Moving: true}
	}

	return Plan{Done: true}
}

// createdAnew is the Plan for an MR of which the provider has created another external resource
// since it was restored; ok is false if it has not.
func createdAnew(u *unstructured.Unstructured) (p Plan, ok bool) {
	when, ok := createdHere(u)
	if !ok {
		return Plan{}, false
	}

	return lostPlan(u, "%s has had an external resource created by its provider, though its hold was not lifted: %s. That was at %s. Look for the one that "+
		"it had "+
		"in the cloud: if it is there, set the annotation %s to what it is called, and delete the other, or delete the MR with its managementPolicies without "+
		"Delete, and restore it again", when.UTC().Format(time.RFC3339), xp.AnnotationExternalName), true
}

// createdHere returns when the provider of an MR has created an external resource, or was about to,
// if that was after the MR was restored.
func createdHere(u *unstructured.Unstructured) (when time.Time, ok bool) {
	created := u.GetCreationTimestamp().Time
	for _, name := range []string{xp.AnnotationCreateSucceeded, xp.AnnotationCreatePending} {
		if when := at(xp.Annotation(u, name)); !created.IsZero() && !when.Before(created) { // API servers and providers count in seconds.
			return when, true
		}
	}

	return time.Time{}, false
}

// NeedsManagers reports whether planning for what is not held needs to know who has written it: an
// MR that was restored, or a Secret that is to get a controller.
func NeedsManagers(u *unstructured.Unstructured) bool {
	if xp.IsConnectionSecret(u) {
		_, controlled := xp.Controller(u)

		return !controlled
	}
	if xp.Label(u, xp.LabelRestore) == "" {
		return false
	}
	_, created := createdHere(u)

	return created || xp.OnlyObserves(u)
}

// Losses returns what is to be told of those of which somebody else has taken the hold off and that
// have no mark that could say so, in a stable order.
func Losses(w *Snapshot, plans map[xp.ID]Plan) []Notice {
	var notices []Notice
	for id, p := range plans {
		if u := w.get(id); p.Lost && u != nil && !xp.HasAnnotation(u, AnnotationHold) {
			target := xp.IdentityOnly(xp.RefTo(u), u.GetUID(), u.GetResourceVersion())
			notices = append(notices, Notice{Target: target, Event: EventStopped, Message: p.Failed, Warning: true})
		}
	}
	slices.SortFunc(notices, func(a, b Notice) int { return xp.RefTo(a.Target).Compare(xp.RefTo(b.Target)) })

	return notices
}

// someOf names the first of some objects.
func someOf(refs []xp.Ref) string {
	const few = 3
	all := make([]string, 0, few)
	for _, r := range refs[:min(few, len(refs))] {
		all = append(all, r.String())
	}
	s := strings.Join(all, ", ")
	if more := len(refs) - few; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}

	return s
}
