package adoption

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	waitReleased = "it gets its own settings back"
	stepReleased = "give its own settings back"
)

// A managedStep is the next step of the hold of an MR, and why the MR is held until then.
type managedStep struct {
	hold.Change

	why    reason.Message
	moving bool
	// nextAt is when the step continues though nothing has changed; zero if it does not.
	nextAt time.Time
	// pending means that it waits for a reconcile that may never happen without a request.
	pending bool
	// ready means that it waits only for a user.
	ready bool
	// failed means that it can't be released.
	failed bool
}

// nextForManaged plans for an MR that no held XR composes.
func nextForManaged(s *Snapshot, u *unstructured.Unstructured, h *hold.Hold) Plan {
	if h == nil {
		return s.planUnheldManaged(u)
	}
	if u.GetDeletionTimestamp() != nil && !h.Freed {
		return Plan{Failed: deletedManaged(u, h)}
	}
	e := managedStepOf(s, u, h)
	if e.failed {
		return Plan{Failed: staysHeld(u, e.why)}
	}
	if e.ready {
		return s.planManual(u, h, Plan{})
	}
	if e.Patch != nil {
		return Plan{Change: e.Change, Moving: true}
	}
	if h.FromUID != nil && e.why.Code == reason.UIDInIdentity && s.xrOf(h.FromUID) != nil {
		e.moving = true // Its XR waits for the user. A release by force must begin there, or the XR goes on under the old revision.
	}
	t := tree{snapshot: s}
	t.awaitManaged(xp.RefTo(u), u, e)

	return t.plan
}

// planComposedManaged plans the next step of the hold of a composed MR, and reports whether it has
// planned for u.
func (t *tree) planComposedManaged(r xp.Ref, u *unstructured.Unstructured) bool {
	h, err := t.snapshot.holdOf(u)
	if err == nil && h == nil {
		return t.holdBelow(r, u)
	}
	if err != nil || h.Clone != "" {
		return false
	}
	if !hold.IsMarked(u) {
		return xp.IsComposite(u) && !h.Quarantine && t.takeOwnerless(r, u, h)
	}
	if h.Quarantine {
		t.awaitQuarantineEnd(r, h)

		return true
	}

	return t.takeOwnerless(r, u, h) || t.planStep(r, u, h)
}

// planStep adds the step of a held MR to the plan of its XR, and reports whether it belongs there.
func (t *tree) planStep(r xp.Ref, u *unstructured.Unstructured, h *hold.Hold) bool {
	e := managedStepOf(t.snapshot, u, h)
	// A user can write any refs into an unsigned mark. An MR that the XR controls is the XR's; an
	// MR without a controller has its own operation.
	switch c, controlled := xp.Controller(u); {
	case controlled && c.UID != t.xr.GetUID():
		return false
	case controlled && e.Patch != nil:
		t.plan.Also = append(t.plan.Also, e.Change)
	}
	if e.failed {
		t.plan.Failed = staysHeld(t.xr.Unstructured, e.why.About(r.String()))

		return true
	}
	if e.ready {
		return t.awaitUser(r, h)
	}
	t.awaitManaged(r, u, e)

	return true
}

func (t *tree) awaitManaged(r xp.Ref, u *unstructured.Unstructured, e managedStep) {
	if e.pending {
		t.awaitReconcile(u, e.why.About(r.String()))
	} else {
		t.waitFor(r, e.moving, e.why.About(r.String()))
	}
	if t.plan.NextAt.IsZero() || !e.nextAt.IsZero() && e.nextAt.Before(t.plan.NextAt) {
		t.plan.NextAt = e.nextAt
	}
}

// managedStepOf returns the next step of the hold of an MR when all items are restored: its XR is
// its controller, if the hold has an Owner -> its external resource is known -> its connection
// secret exists, and the Secrets that its provider reads -> observed, with observe-first ->
// released.
func managedStepOf(s *Snapshot, u *unstructured.Unstructured, h *hold.Hold) managedStep {
	if h.Freed {
		return managedStep{Change: s.key.Lift(u, h, hold.StepFreed), why: reason.Releasing.Messagef(waitReleased), moving: true}
	}
	by, ok := pauseIgnoredBy(u, h)
	if ok && (by.created || h.Identity != "" || h.Observes) {
		return managedStep{why: by.why, failed: by.created}
	}
	e := heldManagedStep(s, u, h)
	if ok && e.Patch != nil && e.Target == u { // Its own settings come back, whether the mark is removed now or later.
		e.Warning = by.why
	}

	return e
}

// heldManagedStep is managedStepOf for an MR that its provider has not reconciled meanwhile.
func heldManagedStep(s *Snapshot, u *unstructured.Unstructured, h *hold.Hold) managedStep {
	if e := s.ownerlessStep(u, h); !e.why.IsZero() {
		return e
	}
	if !isSettled(u, h) {
		id, _ := xp.ProviderID(u)

		return managedStep{why: WhyHeld(h.Identity, id)}
	}
	if why := s.waitFromUID(h); !why.IsZero() {
		return managedStep{why: why}
	}
	if secret := s.uncontrolledSecret(u); secret != nil && h.Secret {
		// A provider takes control of a Secret without a controller only if it publishes other
		// data.
		return managedStep{
			Change: hold.TakeControl(u, secret), why: reason.Relinking.Messagef("it becomes the controller of its connection secret again"), moving: true,
		}
	}
	if why := cmp.Or(s.missingSecret(u, h), s.missingInput(u, h)); !why.IsZero() {
		return managedStep{why: why}
	}
	if e := s.whilePaused(u, h); !e.why.IsZero() {
		return s.notReconciled(u, e)
	}
	if h.Observes && !h.OwnPause() && xp.OnlyObserves(u) {
		if e := s.notReconciled(u, s.observingStep(u, h)); !e.why.IsZero() {
			return e
		}
	}
	if h.ByHand {
		return managedStep{ready: true}
	}

	return managedStep{Change: s.key.Lift(u, h, stepReleased), why: s.whyReleasing(h), moving: true}
}

// notReconciled returns the step with the reason that the provider does not reconcile the MR, if
// the step waits for that and the reason is known; else e.
func (s *Snapshot) notReconciled(u *unstructured.Unstructured, e managedStep) managedStep {
	if !e.moving || e.Patch != nil {
		return e
	}
	if why := s.whyNotReconciled(u); !why.IsZero() {
		return managedStep{why: why}
	}

	return e
}

// whyReleasing returns the reason to wait until an MR is released. Where Secrets are not observed, it
// is the Secret that the MR was held for.
func (s *Snapshot) whyReleasing(h *hold.Hold) reason.Message {
	switch only := s.secretless && h.Identity == "" && !h.Observes; {
	case only && len(h.Inputs) > 0:
		return reason.InputSecretMissing.Messagef("it is held until the Secrets that its provider reads are there")
	case only && h.Secret && len(h.Status) == 0:
		return reason.ConnectionSecretMissing.Messagef("it is held until its connection secret is back")
	default:
		return reason.Releasing.Messagef(waitReleased)
	}
}

// whilePaused returns the step of a paused MR before its provider may observe it; the zero value if
// nothing is left to wait for.
func (s *Snapshot) whilePaused(u *unstructured.Unstructured, h *hold.Hold) managedStep {
	if !xp.IsPaused(u) {
		return managedStep{}
	}
	if h.Observes && !h.OwnPause() && !xp.HasPolicies(u) {
		return managedStep{why: reason.NoManagementPolicies.Messagef("its kind has no managementPolicies, so it can't observe first, as the setting observe-first "+
			"asks: its provider would create or change its external resource. Look for that, then release this: %s", releaseByForce(u))}
	}
	if missing := xp.MissingStatus(u, h.Status); len(missing) > 0 {
		return managedStep{why: reason.StatusMissing.Messagef("%s", whyStatus(u, missing))}
	}
	// The provider's report counts only after it has seen the pause: a status can be from the
	// backup.
	if counts := h.Observes || h.Identity != "" && len(h.Status) > 0; counts && !h.OwnPause() && !hold.IsSeenPaused(u) {
		e := managedStep{
			why: reason.AwaitingPauseReport.Messagef("its provider has not reported yet that it is paused"), moving: true, pending: true,
		}
		// The provider may have seen the pause before Velero restored the status. It does not
		// reconcile because of a change of the status or of a creation annotation
		// (crossplane-runtime, resource.DesiredStateChanged). That is so for hundreds of some
		// thousand MRs, so the first poll rewrites each mark once.
		if len(h.Status) > 0 && h.Polled == "" {
			after := *h
			after.Polled = s.now.UTC().Format(time.RFC3339)
			e.Change = s.rewriteMark(u, &after, stepReportPaused)
		}

		return e
	}

	return managedStep{}
}

// isSettled reports whether an MR that is held for its identity can be released without a second
// external resource: a user has set the external-name, or marked in Crossplane's way that none
// exists.
func isSettled(u *unstructured.Unstructured, h *hold.Hold) bool {
	_, pending := u.GetAnnotations()[xp.AnnotationCreatePending]

	return h.Identity == "" || xp.IdentityOf(u) == xp.Known || h.Identity == xp.CreatePending && !pending || !h.Observes && !xp.MayCreate(u)
}

// WhyHeld returns why an MR with the given identity is held, and the next step. id is the
// provider's ID of the external resource; "" if not known.
func WhyHeld(i xp.Identity, id string) reason.Message {
	switch i { //nolint:exhaustive // The others are not held.
	case xp.CreatePending:
		return reason.CreatePending.Messagef("its external resource was being created at the backup, so there may be one that no MR names. Look for it in the "+
			"cloud: if it exists, set the annotation %s to its name there and remove %s; if not, only remove that, and its provider creates it",
			xp.AnnotationExternalName, xp.AnnotationCreatePending)
	case xp.Recoverable:
		return reason.IdentityMissing.Messagef("it has no external-name, so reconciling it could create a second external resource. Its provider called the "+
			"external resource %q: set the annotation %s to that if it is the external-name of the kind", id, xp.AnnotationExternalName)
	default:
		return reason.IdentityMissing.Messagef("it has no external-name, so reconciling it could create a second external resource. Look for it in the cloud: if it "+
			`exists, set the annotation %s to its name there; if not, create it with "%s release NAME --force"`, xp.AnnotationExternalName, xp.Program)
	}
}

// staysHeld returns the message that u can't be released, because of why.
func staysHeld(u *unstructured.Unstructured, why reason.Message) reason.Message {
	return reason.Message{Code: why.Code, Text: xp.String(u) + " stays held: " + why.Text}
}
