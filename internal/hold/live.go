package hold

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// The command hold puts a quarantine on live objects, without a Restore: nothing reconciles them, so
// nothing in this cluster writes to their external resources. A backup carries these holds, and a
// restore in another cluster adopts what they hold. The command release takes them off here.
const (
	reasonByCommand = "the command hold holds it, so that another cluster can adopt it: nothing reconciles it here. "
	// StepPause is the step that puts a hold on a live object.
	StepPause = "pause it"
	// stepPauseAgain is the step that repeats it after another writer has removed the pause.
	stepPauseAgain = "pause it again, since another writer had removed the pause"
)

// HoldLive plans to hold a live claim, XR, MR or schedule. The Change has no Patch if
// the object is held already, or if the returned message is why it can't be held now. An object
// that something is in flight for is not paused: its controller would not record the outcome.
func (k Key) HoldLive(u *unstructured.Unstructured, now time.Time) (Change, reason.Message) {
	h, err := k.HoldOf(u)
	if err != nil {
		return Change{}, reason.ErrorMessage(err)
	}
	switch {
	case h == nil:
	case h.Freed:
		h = nil
	case !h.Quarantine && !h.ByCommand:
		return Change{}, reason.AwaitingAdoption.Messagef("%s holds it until it is adopted", h.By())
	case h.Quarantine && xp.IsPaused(u):
		return Change{}, reason.Message{}
	}
	if why := inFlight(u); !why.IsZero() {
		return Change{}, why
	}
	if xp.IsUntouched(u) {
		return Change{}, reason.AwaitingProvider.Messagef("its provider has not begun to reconcile it; check that it runs")
	}
	if IsSeenPaused(u) && !xp.IsPaused(u) {
		return Change{}, reason.AwaitingPauseReport.Messagef("an earlier pause of it has ended, and its controller has not reported yet that it works on it again. " +
			"That report would count for the new pause while a reconcile goes on; check that the controller runs")
	}
	c, err := k.holdLive(u, h, now)
	if err != nil {
		return Change{}, reason.ErrorMessage(err)
	}

	return c, reason.Message{}
}

// holdLive plans to put a hold on u or, if it has one that does not pause it, to pause it again.
func (k Key) holdLive(u *unstructured.Unstructured, h *Hold, now time.Time) (Change, error) {
	if h == nil {
		h, err := Put(u.DeepCopy(), Hold{Since: now.UTC().Format(time.RFC3339), Quarantine: true, ByCommand: true, Failing: FailingOf(u), Reported: ReportedOf(u)})
		if err != nil {
			return Change{}, err
		}
		h.Fields = "" // It exists, and has its managers.

		return Change{Target: u, Patch: k.PutPatch(u, h), Step: StepPause}, nil
	}
	c, after := Change{Target: u, Step: stepPauseAgain}, *h
	if h.Quarantine {
		c.Warning = reason.HoldRemoved.Messagef("%s was not paused any more: %s; stop that writer, and run hold again (docs/gitops.md)", xp.String(u),
			LastWriterOf(u))
	}
	if h.Quarantine && h.OwnPause() {
		after.Paused = nil // A user had paused it, and another writer has removed that pause.
	}
	after.Quarantine, after.Unpaused = true, ""
	after.explainConsent()
	c.Patch = k.PutPatch(u, &after)

	return c, nil
}

// inFlight returns what a controller has begun for u and not ended; zero if there is nothing: a
// deletion, the creation of an external resource, or an asynchronous operation of upjet.
func inFlight(u *unstructured.Unstructured) reason.Message {
	switch {
	case u.GetDeletionTimestamp() != nil:
		return reason.BeingDeleted.Messagef("it is being deleted; see what its finalizers wait for")
	case !xp.IsManaged(u):
		return reason.Message{}
	case xp.IdentityOf(u) == xp.CreatePending:
		return reason.CreatePending.Messagef("its external resource is being created. If it stays so, look for that in the cloud, and remove the annotation %s",
			xp.AnnotationCreatePending)
	case xp.IsOperationOngoing(u):
		return reason.AwaitingProvider.Messagef("its provider runs an asynchronous operation, or has not observed the external resource that it created")
	default:
		return reason.Message{}
	}
}

// WhyNotQuiet returns why a controller may still write to the external resources of u, or to what it
// composes; zero if u is paused by a quarantine that the key has signed, its controller has
// reported that, and nothing is in flight.
func (k Key) WhyNotQuiet(u *unstructured.Unstructured) reason.Message {
	h, err := k.HoldOf(u)
	switch {
	case err != nil:
		return reason.ErrorMessage(err)
	case h == nil || !h.Quarantine:
		return reason.NotQuiet.Messagef("it is not held; run: %s", Command(u))
	case !xp.IsPaused(u):
		return reason.HoldRemoved.Messagef("it is held, but not paused: %s; stop that writer, then run: %s", LastWriterOf(u), Command(u))
	}
	if why := inFlight(u); !why.IsZero() {
		return why
	}
	if !IsSeenPaused(u) {
		who := "Crossplane"
		if xp.IsManaged(u) {
			who = "its provider"
		}

		return reason.AwaitingPauseReport.Messagef("%s has not reported yet that it is paused; check that it runs", who)
	}

	return reason.Message{}
}

// Command returns the command that holds the namespace of u, or the whole cluster if u is cluster-scoped.
func Command(u *unstructured.Unstructured) string {
	c := xp.NewCommand(xp.Program, "hold")
	if ns := u.GetNamespace(); ns != "" {
		return c.With("-n", ns).String()
	}

	return c.Word("-A").String()
}
