package hold

import (
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// The reasons of holds of MRs, for Put.
const (
	// ReasonObserve is the reason of the hold of an MR with observe-first.
	ReasonObserve = "restored from a backup; it only observes until its provider has found its external resource [" + string(reason.ObservesFirst) + "]"
	// ReasonEarly is the reason of the hold of an MR that is restored before others. Its provider
	// could create resources that it does not find yet and that are restored later.
	ReasonEarly = "restored from a backup; its provider does not reconcile it until everything is restored [" + string(reason.AwaitingRestore) + "]"
	// ReasonMarked is the reason of the hold of an MR that an earlier restore held at its backup.
	ReasonMarked = "restored from a backup that was taken while it was held [" + string(reason.AwaitingRestore) + "]"
	// ReasonStatus is the reason of the hold of an MR whose status is restored.
	ReasonStatus = "restored from a backup; its provider does not reconcile it until its status is restored [" + string(reason.AwaitingRestore) + "]"
	// ReasonSecret is the reason of the hold of an MR that publishes connection details. Its provider
	// would publish before the Secret of the backup is restored. That Secret can have what the cloud
	// returns only once, and Velero leaves an existing Secret as it is.
	ReasonSecret = "restored from a backup; its provider publishes no connection details until the Secret of the backup is restored [" +
		string(reason.AwaitingRestore) + "]"
	// ReasonOwnerless is the reason of the hold of an MR that a live, unpaused XR lists. Crossplane may
	// be about to drop it: it deletes what a Composition no longer wants before it writes the
	// resourceRefs.
	ReasonOwnerless = "restored from a backup without its XR as its controller; its provider creates nothing until Crossplane makes the XR its controller, " +
		"which shows that the XR still composes it [" + string(reason.AwaitingControl) + "]"
)

// ReasonAbandoned is the reason of the hold of an MR or a nested XR whose XR is not live, or does
// not list it.
func ReasonAbandoned(r xp.Ref) string {
	return "restored from a backup without its XR; nothing reconciles it until an XR controls it. " + HowToOwn(r) + " [" + string(reason.XRNotRestored) + "]"
}

// HowToOwn is the next step for what is held because no XR controls it.
func HowToOwn(r xp.Ref) string {
	return "Restore again when its XR can come and lists it: the XR adopts it then. To let it run without an XR, run: " +
		xp.NewCommand(xp.Program, "release", "--force").On(r.Path()).String()
}
