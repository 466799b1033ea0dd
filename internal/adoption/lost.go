package adoption

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// lostNext is the next step if something was composed again.
const lostNext = "nothing of that is deleted. Stop that writer, and choose which are to stay: docs/gitops.md, \"The hold was taken off\""

// lost returns the Plan for an XR that has lost something after another writer removed a hold.
func (t *tree) lost(code reason.Code, format string, args ...any) Plan {
	return Plan{Lost: true, Total: t.plan.Total, Failed: code.Messagef(format, args...)}
}

// planUnheld returns the Plan for a restored XR that is not held; p is the Plan if this plugin
// lifted its hold. That the XR controls all that it lists is no proof of adoption: Crossplane may
// have replaced its resourceRefs.
func (t *tree) planUnheld(p Plan) Plan {
	s, u := t.snapshot, t.xr.Unstructured
	if !s.isSuspect(u) {
		return p
	}
	asked, own := s.isRequested(u), s.isOfRestore(u)
	if !asked && !own {
		return p // The Restore that created it judges it.
	}
	lost, replacements, known := s.replaced(t.xr, false)
	switch {
	case asked && s.lacksItsHold(u, lost):
		if c, ok := s.holdMissing(u, s.investigation.Restore); ok {
			return Plan{Change: c, Moving: true, Total: p.Total}
		}
	case len(lost) > 0 && known:
		return lostPlan(u, reason.ComposedAgain, "%s was reconciled without its hold before it was adopted: %s. Crossplane has composed: %s; in place of what was "+
			"restored: %s; %s", xp.SomeOf(replacements), xp.SomeOf(lost), lostNext)
	case !asked && (!known || !isReconciledHere(u)):
		p.Unproven, p.Change = true, hold.Change{} // No operation asks for it: it ended, or the XR was never held. So it is worth no list.

		return p
	}

	return p.unpinning(u)
}

// unpinning returns the Plan, or Unpin in its place if it has no change.
func (p Plan) unpinning(u *unstructured.Unstructured) Plan {
	if c := hold.Unpin(u); p.Patch == nil && c.Patch != nil {
		p.Change, p.Done, p.Moving = c, false, true
	}

	return p
}

// lacksItsHold reports whether the hold can be put on again: Crossplane has not reconciled u, or u
// belongs in quarantine and has lost nothing: another cluster may manage the same external resources.
func (s *Snapshot) lacksItsHold(u *unstructured.Unstructured, lost []xp.Ref) bool {
	h := s.stripped(u)

	return !isReconciledHere(u) || h != nil && h.Quarantine && len(lost) == 0
}

// lostBefore returns the Plan for an XR whose hold was put on again while Crossplane was
// reconciling it, and which lists what Crossplane was about to create. lost is false if it lists
// all restored resources that it composed.
func (t *tree) lostBefore() (p Plan, lost bool) {
	if !t.hold.Again {
		return Plan{}, false
	}
	back, replacements, known := t.snapshot.replaced(t.xr, true)

	return t.lost(reason.ComposedAgain, "%s stays held: its hold had been removed, and in its resourceRefs Crossplane replaced what was restored: %s; by: %s. "+
		"Put the former back into the resourceRefs in place of the latter, delete the latter where it exists, and run: %s",
		xp.String(t.xr.Unstructured), xp.SomeOf(back), xp.SomeOf(replacements), xp.ReleaseCommand(xp.RefTo(t.xr.Unstructured))), len(back) > 0 && known
}

// lostPlan returns the Plan for an object that lost something after its hold was removed. The
// format begins with verbs for the object and for who probably removed the hold.
func lostPlan(u *unstructured.Unstructured, code reason.Code, format string, args ...any) Plan {
	return Plan{Lost: true, Change: hold.Unpin(u), Failed: code.Messagef(format, append([]any{xp.String(u), hold.LastWriterOf(u)}, args...)...)}
}

// replaced returns the restored composed resources that an XR no longer lists (lost), and what it
// lists in their place: objects that are younger than the XR and not restored and, with
// missing, objects that do not exist yet. known is false if more must be listed first to be sure.
func (s *Snapshot) replaced(xr xp.Composite, missing bool) (lost, replacements []xp.Ref, known bool) {
	s.addRead(xp.ID{}) // It looks through all objects.
	refs, err := xr.ResourceRefs()
	if err != nil {
		return nil, nil, true // As long as the refs can't be read, nothing can be found.
	}
	listed, kinds := map[xp.ID]bool{}, map[schema.GroupKind]bool{}
	known = true
	for _, r := range refs {
		listed[r.ID()], kinds[r.GroupVersionKind().GroupKind()] = true, true
		known = known && s.isListed(r)
	}
	candidates := slices.DeleteFunc(s.unlisted(xr, listed), func(b restoredResource) bool { return !kinds[b.GroupKind] })
	if len(candidates) == 0 {
		return nil, nil, known
	}
	gone := map[xp.Ref]bool{}
	for _, r := range refs {
		u := s.get(r.ID())
		known = known && (u != nil || s.isWhole(r))
		at, ok := place{GroupKind: r.GroupVersionKind().GroupKind()}, missing && s.isWhole(r)
		if u != nil {
			at, ok = placeOf(u), isReplacement(s, xr.Unstructured, u)
		}
		took := false
		for _, b := range candidates {
			if ok && at.isSame(b.place) {
				gone[b.Ref], took = true, true
			}
		}
		if took {
			replacements = append(replacements, r)
		}
	}

	return slices.SortedFunc(maps.Keys(gone), xp.Ref.Compare), replacements, known
}

// isReconciledHere reports whether Crossplane has reconciled u since its creation in this cluster.
// A status from the backup is older.
func isReconciledHere(u *unstructured.Unstructured) bool {
	c, ok := xp.ConditionOf(u, xp.ConditionSynced)
	switch {
	case !ok || c.Reason == xp.ReasonReconcilePaused:
		return false
	case c.Since.IsZero():
		return xp.IsCurrent(u, c)
	default:
		return !c.Since.Before(u.GetCreationTimestamp().Time)
	}
}

// interfered returns the Plan for a held XR if another writer removed its hold for a while, the
// hold of its claim, or the pause. ok is false if none did, or it did no harm.
func (t *tree) interfered() (p Plan, ok bool) {
	for _, plan := range []func() (Plan, bool){t.planTakenOver, t.lostBefore, t.lostClaim, t.withoutPause} {
		if p, ok = plan(); ok {
			return p, true
		}
	}

	return Plan{}, false
}

// lostClaim returns the Plan for a held XR whose restored claim lost its hold and its reference to
// the XR (as when it was replaced), was reconciled, and has another XR now; else lost is false.
func (t *tree) lostClaim() (p Plan, lost bool) {
	claim, found := t.claimOfThisRestore()
	if !found {
		return Plan{}, false
	}
	r, named := xp.ClaimFrom(claim).CompositeRef()
	other := t.snapshot.Get(r)
	if !named || r.Name == t.xr.GetName() || other == nil || !isReplacement(t.snapshot, t.xr.Unstructured, other) {
		return Plan{}, false // It is bound to none, or to an XR that existed before or was restored.
	}

	return t.lost(reason.ClaimReplaced, "%s has no claim any more: %s was reconciled without its hold: %s. Crossplane has created another XR for it: %s; %s",
		xp.String(t.xr.Unstructured), xp.String(claim), hold.LastWriterOf(claim), r, lostNext), true
}

// claimOfThisRestore returns the XR's claim, if it is unmarked and not older than the Restore.
func (t *tree) claimOfThisRestore() (claim *unstructured.Unstructured, ok bool) {
	r, named := t.xr.ClaimRef()
	if !named || t.snapshot.investigation == nil {
		return nil, false
	}
	claim = t.snapshot.Get(r)
	if claim == nil || xp.HasAnnotation(claim, hold.Annotation) {
		return nil, false
	}
	began := t.snapshot.investigation.Started

	return claim, t.snapshot.restored[claim.GetUID()] || !began.IsZero() && !claim.GetCreationTimestamp().Time.Before(began)
}

// planUnheldClaim returns the Plan for a claim that is not held, as planUnheld for an XR. The
// resources of its XR are judged with the XR.
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
		return lostPlan(u, reason.ClaimReplaced, "%s was reconciled without its hold: %s. Crossplane has created another XR for it: %s; that of the backup was not "+
			"restored, and what it composed has no XR; %s", r, lostNext)
	default:
		// Crossplane copies the claim's settings to its held XR, and composes nothing. The XR's
		// Plan handles both.
		if hold.HasPaused(u) {
			t := tree{snapshot: s}
			t.waitFor(xp.RefTo(u), true, reason.HoldRemoved.Messagef("%s: another writer has removed its hold and not its pause; it is released with "+
				"%s", xp.RefTo(u), r))

			return t.plan
		}
	}

	return p.unpinning(u)
}

// isReplacement reports whether u was not restored, and is no older than the object than.
func isReplacement(s *Snapshot, than, u *unstructured.Unstructured) bool {
	return !s.restored[u.GetUID()] && !u.GetCreationTimestamp().Time.Before(than.GetCreationTimestamp().Time)
}

// planUnheldManaged returns the Plan for an MR that is not held, as planUnheld for an XR. Only
// another external resource does harm.
func (s *Snapshot) planUnheldManaged(u *unstructured.Unstructured) Plan {
	if !s.isSuspect(u) || !s.isRequested(u) {
		return Plan{Done: true}
	}
	if p, ok := s.createdAgain(u); ok {
		return p
	}
	if p, ok := s.heldAgain(u); ok {
		return p
	}
	if c, ok := hold.DropObservePolicy(u); ok {
		return Plan{Change: c, Moving: true}
	}

	return Plan{Done: true}
}

// createdAgain returns the Plan for an MR whose provider has created another external resource
// since the polling Restore created the MR. ok is false if it has not. An MR of an earlier restore
// was judged by that, and a user may have let its provider create since.
func (s *Snapshot) createdAgain(u *unstructured.Unstructured) (p Plan, ok bool) {
	if !s.isOfRestore(u) || u.GetCreationTimestamp().Time.Before(s.investigation.Started) {
		return Plan{}, false
	}
	when, ok := createdHere(u)
	if h := s.stripped(u); h != nil && h.Reported != nil {
		when, ok = h.Reported.Created(u)
	}
	if !ok {
		return Plan{}, false
	}

	return lostPlan(u, reason.CreatedAgain, "%s: its provider has created an external resource, although its hold was not released: %s. That was at %s. Look "+
		"for the former one in the cloud: if it exists, set the annotation %s to its name and delete the other, or delete the MR with its managementPolicies "+
		"without Delete, and restore it again", when.UTC().Format(time.RFC3339), xp.AnnotationExternalName), true
}

// createdHere returns when the provider of an MR created an external resource, or was about to, if
// that was after the MR was created in this cluster. It compares the provider's clock with the API
// server's, so it is for an MR of which nothing better is known.
func createdHere(u *unstructured.Unstructured) (when time.Time, ok bool) {
	created := u.GetCreationTimestamp().Time
	for _, name := range []string{xp.AnnotationCreateSucceeded, xp.AnnotationCreatePending} {
		if when := xp.ParseTime(xp.Annotation(u, name)); !created.IsZero() && !when.Before(created) { // API servers and providers write times in seconds.
			return when, true
		}
	}

	return time.Time{}, false
}

// NeedsManagers reports whether the Plan for u, which is not held, needs its managedFields: u is a
// restored MR that only observes or has created, or a Secret that is to get a controller.
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

// Losses returns the notices for unmarked objects that lost something after another writer removed
// their holds, in a stable order. They have no mark to show it.
func Losses(s *Snapshot, plans map[xp.ID]Plan) []Notice {
	var notices []Notice
	for id, p := range plans {
		if u := s.get(id); p.Lost && u != nil && !xp.HasAnnotation(u, hold.Annotation) {
			target := xp.IdentityOnly(xp.RefTo(u), u.GetUID(), u.GetResourceVersion())
			notices = append(notices, Notice{Target: target, Event: EventStopped, Message: p.Failed.String(), Warning: true})
		}
	}
	slices.SortFunc(notices, func(a, b Notice) int { return xp.RefTo(a.Target).Compare(xp.RefTo(b.Target)) })

	return notices
}

// planTakenOver returns the Plan for an XR that was taken over while Crossplane may still write, or
// has written, new resourceRefs. ok is false if the XR lists all of Refs and will go on doing so.
func (t *tree) planTakenOver() (p Plan, ok bool) {
	u := t.xr.Unstructured
	switch {
	case !t.hold.IsBeingTakenOver(u):
		return Plan{}, false
	case !hold.IsSeenPaused(u):
		t.waitFor(xp.RefTo(u), true, reason.AwaitingPauseReport.Messagef("%s: another writer had created it, and Crossplane has not reported yet that it is "+
			"paused", xp.RefTo(u)))

		return t.plan, true
	case t.hold.ListsAll(u):
		return Plan{}, false
	}
	refs, _ := t.xr.ResourceRefs()

	return Plan{
		Lost: true, Total: t.plan.Total, Change: t.hold.GiveUp(u),
		Failed: reason.ComposedTwice.Messagef("%s: another writer created it before the restore, and Crossplane has composed: %s. What it composed in the "+
			"backup is not in the cluster, or has no XR: %s. Nothing of that is deleted. To get what it composed in the backup, %s", xp.String(u), xp.SomeOf(refs),
			xp.SomeOf(t.hold.Refs), xp.HowToGetBack(xp.RefTo(u))),
	}, true
}
