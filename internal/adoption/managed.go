package adoption

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Why an MR that is about to be let go is held until then.
const (
	waitPublished = "it was held until its connection secret was back"
	waitPublish   = "it is held until its connection secret is back"
	waitLetGo     = "it is being given its own settings back"
)

// causeNoPolicies is the cause of what can't be observed first.
const causeNoPolicies = "its kind has no managementPolicies"

// A managedStep is how the hold of an MR goes on, and why it is on until then.
type managedStep struct {
	Change

	why string
	// cause is the same without what a provider says; "" if there is nothing of that in it.
	cause  string
	moving bool
	// laterNotice is when it goes on though nothing has changed; zero if it does not.
	later time.Time
	// silent says that it waits for a word that may never come by itself.
	silent bool
	// ready says that it waits for nothing but a person.
	ready bool
	// failed says that it can't be let go.
	failed bool
}

// nextForManaged plans for an MR that is held, and that no held XR composes.
func nextForManaged(w *Snapshot, u *unstructured.Unstructured, h *Hold) Plan {
	if h == nil {
		return w.planUnheldManaged(u)
	}
	if u.GetDeletionTimestamp() != nil && !h.Freed {
		return Plan{Failed: deletedManaged(u)}
	}
	e := managedStepOf(w, u, h)
	if e.failed {
		return Plan{Failed: fmt.Sprintf("%s stays held: %s", xp.String(u), e.why)}
	}
	if e.ready {
		return w.planByHand(u, h, Plan{})
	}
	if e.Patch == nil {
		plan := Plan{Waiting: []string{xp.String(u) + ": " + e.why}, Moving: e.moving, Blocked: !e.moving, NextAt: e.later}
		if e.silent {
			plan.Pending = []PendingReconcile{w.pendingReconcile(u, w.lastSeen(u), plan.Waiting[0])}
		}

		return plan
	}

	return Plan{Change: e.Change, Moving: true}
}

// letGo plans how the hold of an MR goes on and reports whether there is one.
func (t *tree) letGo(r xp.Ref, u *unstructured.Unstructured) bool {
	h, err := t.snapshot.holdOf(u)
	if err == nil && h == nil {
		return t.holdBelow(r, u)
	}
	if err != nil || h.Clone != "" || !IsMarked(u) {
		return false
	}
	if h.Quarantine {
		t.awaitEnd(r, h)

		return true
	}
	if t.takeOwnerless(r, u, h) {
		return true
	}
	e := managedStepOf(t.snapshot, u, h)
	// The refs in a mark are what somebody wrote into it. What the XR controls is its own; what
	// nobody does has an operation of its own.
	switch c, controlled := xp.Controller(u); {
	case controlled && c.UID != t.xr.GetUID():
		return false
	case controlled && e.Patch != nil:
		t.plan.Also = append(t.plan.Also, e.Change)
	}
	if e.failed {
		t.plan.Failed = fmt.Sprintf("%s stays held: %s: %s", xp.String(t.xr.Unstructured), r, e.why)

		return true
	}
	if e.ready {
		return t.awaitPerson(r, h)
	}
	t.awaitManaged(r, u, e)

	return true
}

// awaitManaged has the Plan wait for the end of the hold of an MR.
func (t *tree) awaitManaged(r xp.Ref, u *unstructured.Unstructured, e managedStep) {
	if e.silent {
		t.awaitReconcile(u, "%s: %s", r, e.why)
	} else {
		t.wait(e.moving, "%s: %s", r, e.why)
	}
	t.plan.Causes[len(t.plan.Causes)-1] = r.Kind + " " + cmp.Or(e.cause, e.why)
	if t.plan.NextAt.IsZero() || !e.later.IsZero() && e.later.Before(t.plan.NextAt) {
		t.plan.NextAt = e.later
	}
}

// managedStepOf plans the end of the hold of an MR, when all items are restored: its XR is its
// controller, if that was at work -> its external resource is known -> its connection secret is
// there, and so are those that its provider reads -> observed, if it is to be observed first -> its
// own settings back.
func managedStepOf(w *Snapshot, u *unstructured.Unstructured, h *Hold) managedStep {
	if h.Freed {
		return managedStep{Change: w.key.lift(u, h, stepFreed), why: waitLetGo, moving: true}
	}
	by, ok := unheededBy(u, h)
	if ok && (by.created || h.Identity != "" || h.Observes) {
		return managedStep{why: by.why, cause: causeUnheeded, failed: by.created}
	}
	e := heldManagedStep(w, u, h)
	if ok && e.Patch != nil && e.Target == u { // Its own settings come back, whether the mark goes at once or after that.
		e.Warning = by.why
	}

	return e
}

// heldManagedStep is managedStepOf for what nobody has reconciled meanwhile.
func heldManagedStep(w *Snapshot, u *unstructured.Unstructured, h *Hold) managedStep {
	if e := w.ownerlessStep(u, h); e.why != "" {
		return e
	}
	if !isSettled(u, h) {
		id, _ := xp.ProviderID(u)

		return managedStep{why: WhyHeld(h.Identity, id), cause: string(h.Identity)}
	}
	if s := w.looseSecret(u); s != nil && h.Secret {
		// A provider takes control of one without a controller only if what it publishes differs.
		return managedStep{Change: takeControl(u, s), why: "its connection secret came back without it, and is being made its own again", moving: true}
	}
	if c, ok := w.takeStored(u, h); ok {
		return managedStep{Change: c, why: "its connection secret came back with the UID that it had before, and is being made its own again", moving: true}
	}
	if why := cmp.Or(w.missingSecret(u, h), w.missingStored(u, h)); why != "" {
		return managedStep{why: why, cause: causeSecret}
	}
	if why := w.missingInput(u, h); why != "" {
		return managedStep{why: why, cause: causeInput}
	}
	if e := w.whilePaused(u, h); e.why != "" {
		return w.notReconciled(u, e)
	}
	if h.Observes && !h.ownPause() && xp.OnlyObserves(u) {
		return w.notReconciled(u, observingStep(w, u, h))
	}
	if h.ByHand {
		return managedStep{ready: true}
	}
	step, why := w.lastStep(u, h)

	return managedStep{Change: w.key.lift(u, h, step), why: why, moving: true}
}

// notReconciled is an end of the hold of an MR with why its provider says nothing, if it waits for
// that and the reason is known.
func (s *Snapshot) notReconciled(u *unstructured.Unstructured, e managedStep) managedStep {
	if !e.moving || e.Patch != nil {
		return e
	}
	if why := s.whyNotReconciled(u); why != "" {
		return managedStep{why: why, cause: causeInactive}
	}

	return e
}

// lastStep returns the step that lets an MR go, and why that waits until it is taken. That its
// connection secret is back is said only if it is.
func (s *Snapshot) lastStep(u *unstructured.Unstructured, h *Hold) (step, why string) {
	const back = "give its own settings back"
	r, publishes := xp.SecretRef(u)
	only := h.Secret && publishes && h.Identity == "" && !h.Observes && len(h.Status) == 0
	switch {
	case s.secretless && len(h.Inputs) > 0 && h.Identity == "" && !h.Observes:
		return back, waitInput
	case only && s.Has(r):
		return "its connection secret is back; give its own settings back", waitPublished
	case only && s.secretless:
		return back, waitPublish
	default:
		return back, waitLetGo
	}
}

// whilePaused says what an MR waits for before its provider may look at it; nothing if that is
// over.
func (s *Snapshot) whilePaused(u *unstructured.Unstructured, h *Hold) managedStep {
	if !xp.IsPaused(u) {
		return managedStep{}
	}
	if h.Observes && !h.ownPause() && !xp.HasPolicies(u) {
		return managedStep{
			why: fmt.Sprintf("it was to be observed first, as the setting observe-first says, and can't be: its kind has no managementPolicies, so its provider would "+
				"create what it does not find, and change what it finds. Look for its external resource, then let it go: %s", releaseByForce(u)),
			cause: causeNoPolicies,
		}
	}
	if missing := xp.MissingStatus(u, h.Status); len(missing) > 0 {
		return managedStep{why: whyStatus(u, missing)}
	}
	// A provider's word counts if it comes after the one that the MR is paused: status can be as
	// old as the backup.
	if counts := h.Observes || h.Identity != "" && len(h.Status) > 0; counts && !h.ownPause() && !isSeenPaused(u) {
		e := managedStep{why: "its provider has not noticed that it is paused; is the provider running?", moving: true, silent: true}
		// It may have, before Velero brought the status back; and it does not look at a status, nor
		// at what a person says of a creation (crossplane-runtime, resource.DesiredStateChanged).
		// Of thousands that is so for hundreds, so each is asked for once, at the first poll.
		if len(h.Status) > 0 && h.Polled == "" {
			after := *h
			after.Polled = s.now.UTC().Format(time.RFC3339)
			e.Change = s.rewriteMark(u, &after, stepSay)
		}

		return e
	}

	return managedStep{}
}

// isSettled reports whether an MR that was held because of its identity makes no second external
// resource when it is let go: a person has said which its external resource is, or, in the way that
// Crossplane has for it, that there is none.
func isSettled(u *unstructured.Unstructured, h *Hold) bool {
	_, pending := u.GetAnnotations()[xp.AnnotationCreatePending]

	return h.Identity == "" || xp.IdentityOf(u) == xp.Known || h.Identity == xp.CreatePending && !pending || !h.Observes && !xp.MayCreate(u)
}

// WhyHeld says why an MR of the given identity is held, and what to do. The id is what its provider
// calls the external resource, if it says.
func WhyHeld(i xp.Identity, id string) string {
	switch i { //nolint:exhaustive // The others are not held.
	case xp.CreatePending:
		return "it was being created when it was backed up, so there may be an external resource that nothing names. Look for it in the cloud: if it is there, set " +
			"the annotation " + xp.AnnotationExternalName + " to what it is called there and remove " + xp.AnnotationCreatePending + "; if not, only remove that, to " +
			"have it created"
	case xp.Recoverable:
		return fmt.Sprintf("it has no external-name, so reconciling it could create a second external resource. Its provider called the external resource %q; set "+
			"the annotation %s to that if it is the external-name that the kind has", id, xp.AnnotationExternalName)
	default:
		return "it has no external-name, so reconciling it could create a second external resource. Look for it in the cloud: if it is there, set the annotation " +
			xp.AnnotationExternalName + ` to what it is called there; if not, have it created with "velero-plugin-for-crossplane release NAME --force"`
	}
}

// ReasonObserve is why an MR is held that is to be observed first.
const ReasonObserve = "restored from a backup; it only observes until its provider has found its external resource. " + lifted

// ReasonEarly is why an MR is held that comes back ahead of others: its provider could make what it
// does not find and what comes later.
const ReasonEarly = "restored from a backup; its provider is kept from reconciling it until everything is restored. " + lifted

// ReasonMarked is why an MR is held that was when it was backed up, by an earlier restore.
const ReasonMarked = "restored from a backup that was taken while it was held. " + lifted

// ReasonStatus is why an MR is held that gets its status back.
const ReasonStatus = "restored from a backup; it is kept from being reconciled until its status is back. " + lifted

// saveOriginals puts the policies and the status of u into the hold, and changes those of u, which
// is about to be created.
func (h *Hold) saveOriginals(u *unstructured.Unstructured, of Hold, earlier *Hold) error {
	h.Identity = of.Identity
	switch {
	case earlier != nil && earlier.Observes && xp.OnlyObserves(u):
		h.Observes, h.Policies = true, earlier.Policies
	case of.Observes && xp.MayWrite(u):
		h.Observes = true
		if _, _, err := unstructured.NestedStringSlice(u.Object, "spec", "managementPolicies"); err != nil {
			return fmt.Errorf("cannot make %s observe only: %w", xp.String(u), err)
		}
		h.Policies, _ = xp.ManagementPolicies(u)
		if err := unstructured.SetNestedStringSlice(u.Object, []string{xp.PolicyObserve}, "spec", "managementPolicies"); err != nil {
			return fmt.Errorf("cannot make %s observe only: %w", xp.String(u), err)
		}
	}
	if earlier != nil {
		earlier.returnStatus(u)
	}
	if h.Status = of.Status; len(h.Status) == 0 {
		return nil
	}
	if own, ok := u.GetAnnotations()[xp.AnnotationRestoreStatus]; ok {
		h.RestoreStatus = &own
	}
	xp.Annotate(u, xp.AnnotationRestoreStatus, "true")

	return nil
}

// returnStatus gives u, which is about to be created, its own setting for its status back.
func (h *Hold) returnStatus(u *unstructured.Unstructured) {
	if len(h.Status) == 0 {
		return
	}
	annotations := u.GetAnnotations()
	delete(annotations, xp.AnnotationRestoreStatus)
	if h.RestoreStatus != nil {
		annotations[xp.AnnotationRestoreStatus] = *h.RestoreStatus
	}
	u.SetAnnotations(annotations)
}

// returnPolicies gives u, which is about to be created, its own managementPolicies back.
func (h *Hold) returnPolicies(u *unstructured.Unstructured) {
	switch {
	case !h.Observes || !xp.OnlyObserves(u):
	case len(h.Policies) == 0:
		unstructured.RemoveNestedField(u.Object, "spec", "managementPolicies")
	default:
		_ = unstructured.SetNestedStringSlice(u.Object, h.Policies, "spec", "managementPolicies") // The path was just read.
	}
}

// restoreOriginals adds to a patch of a live object what keep has changed.
func (h *Hold) restoreOriginals(u *unstructured.Unstructured, p map[string]any) {
	if len(h.Status) > 0 {
		set(p, nullable(h.RestoreStatus), "metadata", "annotations", xp.AnnotationRestoreStatus)
	}
	// What somebody else has changed since is theirs.
	if h.Observes && xp.OnlyObserves(u) {
		var own any
		if len(h.Policies) > 0 {
			own = h.Policies
		}
		set(p, own, "spec", "managementPolicies")
	}
}

// set sets a field of a patch, of which nil is one that is removed.
func set(patch map[string]any, value any, path ...string) {
	for _, name := range path[:len(path)-1] {
		next, ok := patch[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			patch[name] = next
		}
		patch = next
	}
	patch[path[len(path)-1]] = value
}
