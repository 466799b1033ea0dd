package adoption

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Stuck returns why Crossplane or the provider probably does not reconcile u, and the next step.
func Stuck(u *unstructured.Unstructured, i Installation) reason.Message {
	deployment, running := i.Namespace+"/"+i.Name, strings.TrimSpace("Crossplane "+i.Version)
	restart := `run "` + i.kubectl("rollout", "restart").String() + `"`
	switch {
	case xp.IsManaged(u):
		return reason.ProviderSilent.Messagef("each poll requests a reconcile; check that the Deployment of its provider runs, and read its log")
	case i.Hidden && isCircuitOpen(u):
		return reason.CircuitOpen.Messagef("its circuit breaker is open, so Crossplane drops its events (crossplane #7703); each poll requests a reconcile. To " +
			"speed that up, restart Crossplane")
	case i.Hidden:
		return reason.CrossplaneSilent.Messagef("Crossplane's Deployment can't be read; check that Crossplane runs, and read its log")
	case i.Name == "":
		return reason.CrossplaneNotRunning.Messagef("no namespace has a Deployment with the label %s; start Crossplane, or restart it where it runs", LabelCrossplane)
	case i.Replicas == 0:
		return reason.CrossplaneNotRunning.Messagef("Crossplane (Deployment %s) is scaled to zero; run \"%s\"", deployment, i.kubectl("scale").Word("--replicas=1"))
	case i.Ready == 0:
		return reason.CrossplaneNotRunning.Messagef("no replica of Crossplane (Deployment %s) is ready; run \"%s\" and start it", deployment, i.kubectl("describe"))
	case isCircuitOpen(u):
		return reason.CircuitOpen.Messagef("its circuit breaker is open, so %s drops its events (crossplane #7703); each poll requests a reconcile. To speed "+
			"that up, %s; to avoid it, raise --circuit-breaker-burst and --circuit-breaker-refill-rate", running, restart)
	case i.has(stopsWatching):
		return reason.WatchLost.Messagef("%s %s; %s, and upgrade to %s to avoid it", running, stopsWatching.What, restart, stopsWatching.Before)
	default:
		return reason.CrossplaneSilent.Messagef("%s runs and does not reconcile it: it can't watch the kind, or drops events of XRs that change often (crossplane "+
			"#7703, from 2.1.0 on). Each poll requests a reconcile. Read Crossplane's log and the conditions of the XRD; if nothing changes, %s", running, restart)
	}
}

// Named returns the Plan with the reason why s is not reconciled.
func (p Plan) Named(s PendingReconcile, why reason.Message) Plan {
	p.Waiting, p.Stuck = slices.Clone(p.Waiting), true
	if n := slices.Index(p.Waiting, s.Waiting); n >= 0 {
		p.Waiting[n] = why.About(s.Waiting.Text)
	}

	return p
}

func isCircuitOpen(u *unstructured.Unstructured) bool {
	c, ok := xp.ConditionOf(u, xp.ConditionResponsive)

	return ok && c.Status == "False" && c.Reason == xp.ReasonCircuitOpen
}

// IsRefused reports whether a wait is for an XR whose composed resources the API server refuses.
// Crossplane names these in the condition, and says why in Events only (crossplane
// internal/controller/apiextensions/composite, Reconcile).
func IsRefused(wait reason.Message) bool {
	return wait.Code == reason.CrossplaneFailing &&
		(strings.Contains(wait.Text, "Unsynced resources: ") || strings.Contains(wait.Text, "some resources were invalid"))
}

// IsRefusal reports whether the message of an Event is that the API server refuses an object as
// invalid.
func IsRefusal(message string) bool {
	return strings.Contains(message, "cannot apply composed resource") && strings.Contains(message, " is invalid: ")
}

// WhyRefused returns why an XR waits, with what the API server says. An immutable field that has the
// XR's UID has another one since the restore.
func WhyRefused(xr *unstructured.Unstructured, said string) reason.Message {
	if strings.Contains(said, "immutable") && xr.GetUID() != "" && strings.Contains(said, string(xr.GetUID())) {
		return reason.UIDInImmutable.Messagef("%s: Crossplane can't reconcile it, because a field that can't be changed has the UID that it had in the backup: %s. "+
			"Delete the object that this names, if it may be made again: Crossplane composes it again", xp.String(xr), said)
	}

	return reason.CrossplaneFailing.Messagef("%s: Crossplane can't reconcile it: %s", xp.String(xr), said)
}
