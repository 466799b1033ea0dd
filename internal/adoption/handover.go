package adoption

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A handover moves live objects to another cluster. The command hold puts a quarantine on them
// here, without a Restore: nothing reconciles them, so nothing in this cluster writes to their
// external resources while the other cluster adopts them. The command release goes on here, and the
// command retire deletes them here.
const (
	reasonHandover = "the command hold holds it, so that another cluster can take it over: nothing reconciles it here. "
	// StepHandover is the step that puts a hold on a live object.
	StepHandover = "pause it for a handover"
	// StepHandoverAgain is the step that repeats it after another writer has removed the pause.
	StepHandoverAgain = "pause it again, since another writer had removed the pause of its handover"
)

// IsHandover reports whether the hold is that of a handover that is not aborted.
func (h *Hold) IsHandover() bool { return h.Handover && h.Quarantine }

// By returns what put the hold on, for a message.
func (h *Hold) By() string {
	switch {
	case h.Handover:
		return "the command hold"
	case h.Restore == "":
		return "an unknown Restore"
	default:
		return "the Restore " + h.Restore
	}
}

// HandOver plans to hold a live claim, XR, MR or schedule for a handover. The Change has no Patch if
// the object is held already, or if the returned message is why it can't be held now. An object
// that something is in flight for is not paused: its controller would not record the outcome.
func (k Key) HandOver(u *unstructured.Unstructured, now time.Time) (Change, reason.Message) {
	h, err := k.HoldOf(u)
	if err != nil {
		return Change{}, reason.ErrorMessage(err)
	}
	held := h != nil && !h.Freed
	switch {
	case held && !h.Quarantine && !h.Handover:
		return Change{}, reason.AwaitingAdoption.Messagef("%s holds it until it is adopted", h.By())
	case held && h.Quarantine && xp.IsPaused(u):
		return Change{}, reason.Message{}
	}
	if why := InFlight(u); !why.IsZero() {
		return Change{}, why
	}
	if xp.IsUntouched(u) {
		return Change{}, reason.AwaitingProvider.Messagef("its provider has not begun to reconcile it; check that it runs")
	}
	if isSeenPaused(u) && !xp.IsPaused(u) {
		return Change{}, reason.AwaitingPauseReport.Messagef("an earlier pause of it has ended, and its controller has not reported yet that it works on it again. " +
			"That report would count for the new pause while a reconcile goes on; check that the controller runs")
	}
	c, err := k.handOver(u, h, now)
	if err != nil {
		return Change{}, reason.ErrorMessage(err)
	}

	return c, reason.Message{}
}

func (k Key) handOver(u *unstructured.Unstructured, h *Hold, now time.Time) (Change, error) {
	after, step := &Hold{}, StepHandover
	var warning reason.Message
	if h != nil && !h.Freed {
		*after, step = *h, StepHandoverAgain
		after.Quarantine, after.Unpaused = true, ""
		if h.ownPause() && h.Quarantine {
			after.Paused = nil // A user had paused it, and another writer has removed that pause.
		}
		if h.Quarantine {
			warning = reason.HoldRemoved.Messagef("%s was not paused any more: %s; stop that writer, and run hold again (docs/gitops.md)", xp.String(u), lastWriterOf(u))
		}
	} else {
		put, err := Put(u.DeepCopy(), Hold{Since: now.UTC().Format(time.RFC3339), Quarantine: true, Handover: true, Reported: ReportedOf(u)})
		if err != nil {
			return Change{}, err
		}
		*after = *put
		after.Fields = "" // It exists, and has its managers.
	}
	after.awaitConsentOf(Hold{})
	mark, err := k.mark(xp.RefTo(u), after)
	if err != nil {
		return Change{}, err
	}
	p := patch(u, map[string]any{AnnotationHold: mark, xp.AnnotationPaused: "true"})
	if policy, _ := (xp.Instance{Unstructured: u}).UpdatePolicy(); after.Pinned && policy != xp.UpdateManual {
		maps.Copy(p, xp.Instance{Unstructured: u}.Field(fieldUpdatePolicy, xp.UpdateManual))
	}

	return Change{Target: u, Patch: p, Step: step, Warning: warning}, nil
}

// InFlight returns what a controller has begun for u and not ended; zero if there is nothing: a
// deletion, the creation of an external resource, or an asynchronous operation of upjet.
func InFlight(u *unstructured.Unstructured) reason.Message {
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
		return reason.NotHandedOver.Messagef("it is not held; run: %s", HandoverCommand(u))
	case !xp.IsPaused(u):
		return reason.HoldRemoved.Messagef("it is held, but not paused: %s; stop that writer, then run: %s", lastWriterOf(u), HandoverCommand(u))
	}
	if why := InFlight(u); !why.IsZero() {
		return why
	}
	if !isSeenPaused(u) {
		who := "Crossplane"
		if xp.IsManaged(u) {
			who = "its provider"
		}

		return reason.AwaitingPauseReport.Messagef("%s has not reported yet that it is paused; check that it runs", who)
	}

	return reason.Message{}
}

// HandoverCommand returns the command that holds the namespace of u for a handover, or the whole
// cluster if u is cluster-scoped.
func HandoverCommand(u *unstructured.Unstructured) string {
	c := xp.NewCommand(xp.Program, "hold")
	if ns := u.GetNamespace(); ns != "" {
		c = c.With("-n", ns)
	}

	return c.String()
}

// abortHandover and retireHandover return the commands that end a handover in this cluster.
func abortHandover() string { return xp.NewCommand(xp.Program, "release").Word("--handover").String() }

func retireHandover() string {
	return xp.NewCommand(xp.Program, "retire").Word("--report", "FILE").String()
}

// A Handover is the record of what the command hold holds.
type Handover struct {
	// Since is when the command began, and Quiet when it had proven that nothing in the scope writes
	// any more; both in RFC 3339. Quiet is "" until then.
	Since string `json:"since"`
	Quiet string `json:"quiet,omitempty"`
}

// Handovers are the handovers of a cluster by namespace; "" is the whole cluster.
type Handovers map[string]Handover

// Of returns the handover whose scope has an object. A cluster-scoped object belongs to the
// namespace of its claim.
func (all Handovers) Of(u *unstructured.Unstructured) (Handover, bool) {
	if h, ok := all[""]; ok {
		return h, true
	}
	namespace := u.GetNamespace()
	if namespace == "" {
		namespace = xp.Label(u, xp.LabelClaimNamespace)
	}
	if namespace == "" {
		return Handover{}, false
	}
	h, ok := all[namespace]

	return h, ok
}
