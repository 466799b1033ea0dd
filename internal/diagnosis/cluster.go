package diagnosis

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// stuckAfter is how long a change may stay unreconciled. A provider has thousands of MRs.
const (
	stuckAfter         = time.Minute
	stuckAfterProvider = 5 * time.Minute
)

// checkConditions finds objects that Crossplane or a provider has not reconciled, or cannot.
func (d *diagnosis) checkConditions() {
	for _, o := range d.with(isClaim | isComposite | isManaged | isNew) {
		u, r := o.full(), o.Ref
		if o.is(isMarked|isDeleting) || xp.IsIdle(u) {
			continue
		}
		if why, severity := d.whyStuck(u); why != "" {
			d.add(reason.Stuck, severity, r, why, d.nextStep(u))

			continue // Its conditions are from before the last change.
		}
		synced, hasSynced := xp.ConditionOf(u, xp.ConditionSynced)
		ready, hasReady := xp.ConditionOf(u, xp.ConditionReady)
		if hasSynced && synced.Status != "True" && synced.Reason != xp.ReasonReconcilePaused {
			d.add(reason.NotSynced, report.Warning, r, "it can't be reconciled: "+cmp.Or(synced.Message, synced.Reason, noReason),
				"correct that; its Events have more: kubectl describe")
		}
		if hasReady && synced.Status == "True" && ready.Status != "True" {
			d.add(reason.NotReady, report.Warning, r, "it is not Ready: "+cmp.Or(ready.Message, ready.Reason, noReason),
				"wait, or check what it composes, or its provider's log")
		}
	}
}

// noReason is in place of the message of a condition that has none.
const noReason = "its condition has no reason"

// whyStuck returns why no controller seems to reconcile an object; "" if one does, or still may.
func (d *diagnosis) whyStuck(u *unstructured.Unstructured) (why string, severity report.Severity) {
	synced, hasSynced := xp.ConditionOf(u, xp.ConditionSynced)
	age := d.Now.Sub(lastChange(u))
	changed := fmt.Sprintf("it was changed %s ago", age.Round(time.Second))
	switch {
	case age < stuckAfter:
		return "", ""
	case !hasSynced:
		why = "nothing has reconciled it since " + changed
	case synced.Reason == xp.ReasonReconcilePaused:
		why = changed + " and is not paused, and its condition still has the reason ReconcilePaused"
	case synced.Generation != 0 && synced.Generation != u.GetGeneration():
		why = changed + ", and nothing has reconciled the change"
	default:
		return "", ""
	}
	if xp.IsManaged(u) && age < stuckAfterProvider {
		return why, report.Warning
	}

	return why, report.Error
}

// nextStep returns what to do about an object that no controller reconciles.
func (d *diagnosis) nextStep(u *unstructured.Unstructured) string {
	switch {
	case xp.IsManaged(u):
		if name := d.inactive(u.GroupVersionKind().GroupKind()); name != "" {
			return "its ManagedResourceDefinition " + name + " is not active, so its provider ignores it, or does not run (" +
				xp.ReasonAwaitingActivation + "); " + xp.HowToActivate(name)
		}

		return "check whether its provider runs and is Healthy: kubectl get providers"
	case d.Installation == nil:
		return "check whether Crossplane runs: kubectl get deployments -A -l " + adoption.LabelCrossplane
	default:
		return adoption.Stuck(u, *d.Installation).String()
	}
}

// lastChange returns the time of the last write outside the status, if managedFields record it.
func lastChange(u *unstructured.Unstructured) time.Time {
	last := u.GetCreationTimestamp().Time
	for _, f := range u.GetManagedFields() {
		if f.Subresource == "" && f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}

	return last
}

// checkHolds finds held objects, whether or not their Restore is under way.
func (d *diagnosis) checkHolds() {
	for _, o := range d.sortedAll() {
		u := o.full()
		if !o.is(isMarked) {
			d.checkLeftover(u)

			continue
		}
		h, err := hold.Of(u)
		r := xp.RefTo(u)
		switch {
		case errors.Is(err, hold.ErrNewer):
			d.add(reason.Malformed, report.Error, r, err.Error(), hold.HowToRead+", and then run release")
		case err != nil:
			d.add(reason.Malformed, report.Error, r, err.Error(), "correct or remove that annotation, and then run release")
		case h != nil:
			d.addHeld(u, h)
		}
	}
}

func (d *diagnosis) addHeld(u *unstructured.Unstructured, h *hold.Hold) {
	r, how, why := xp.RefTo(u), hold.HowToRelease(u, h), hold.Why(u, h)
	next := cmp.Or(how, "provide what it waits for, then run: "+xp.ReleaseCommand(r).String())
	plan := d.Plans[r.ID()]
	switch {
	case !plan.Failed.IsZero():
		why = hold.WithoutNext(plan.Failed.String(), how)
	case len(plan.Waiting) > 0:
		why = "waiting for " + hold.WithoutNext(d.shortened(plan.Waiting[0]).String(), how)
		if n := len(plan.Waiting) - 1; n > 0 {
			why += fmt.Sprintf(" (and %d more)", n)
		}
	}
	held := fmt.Sprintf("held by %s since %s: %s", h.By(), h.Since, why)
	phase, known := d.Restores[h.Restore]
	switch {
	case h.IsByCommand():
		d.add(reason.HeldByCommand, report.Error, r, held, how)
	case h.Quarantine:
		d.add(reason.Quarantined, report.Error, r, "the Restore "+h.Restore+" put it in quarantine at "+h.Since+": nothing reconciles it", how)
	case h.ByHand:
		d.add(reason.Held, report.Error, r, held, how)
	case h.Restore == "":
		d.add(reason.LeakedHold, report.Error, r, "held since "+h.Since+": "+why, next)
	case phase == PhaseUnread:
		d.add(reason.Held, report.Error, r, held, "the Restores could not be read; if that one has ended, "+next)
	case !known:
		d.add(reason.LeakedHold, report.Error, r, held+"; that Restore does not exist", next)
	case !IsUnderWay(phase):
		d.add(reason.LeakedHold, report.Error, r, held+"; that Restore has ended as "+phase, next)
	default:
		_, name, _ := strings.Cut(h.Restore, "/")
		d.add(reason.Held, report.Error, r, held, "the restore continues when that exists; see: "+xp.DescribeRestore(name).String())
	}
}

// shortened returns what an object waits for. If another object has a problem with the same code,
// that has the next step, and the reason of that problem is enough here.
func (d *diagnosis) shortened(waiting reason.Message) reason.Message {
	if d.unsure == nil {
		d.unsure = map[string]string{}
		for _, p := range d.found {
			if p.Code == reason.CreatePending || p.Code == reason.IdentityMissing {
				d.unsure[string(p.Code)+" "+p.Object.String()] = p.Reason
			}
		}
	}
	object, _, _ := strings.Cut(waiting.Text, ": ")
	if why := d.unsure[string(waiting.Code)+" "+object]; why != "" {
		waiting.Text = object + ": " + why
	}

	return waiting
}

// PhaseUnread stands for the phase of a Restore that could not be read.
const PhaseUnread = "Unread"

// IsUnderWay reports whether Velero still works on a Restore with the phase, and lifts its holds.
func IsUnderWay(phase string) bool {
	return slices.Contains([]string{
		"", "New", "InProgress", "WaitingForPluginOperations", "WaitingForPluginOperationsPartiallyFailed", "Finalizing", "FinalizingPartiallyFailed",
	}, phase)
}

// checkLeftover finds a setting that a hold left on an object that is not held.
func (d *diagnosis) checkLeftover(u *unstructured.Unstructured) {
	setting := hold.LeftoverSetting(u)
	if setting == "" {
		return
	}
	next := "give it the value that it had, or remove it if it had none, unless a user set it"
	if setting == xp.AnnotationPaused {
		next = "unless a user paused it, run: " + xp.Kubectl("annotate", xp.RefTo(u), setting+"-").String()
	}
	d.add(reason.LeakedHold, report.Error, xp.RefTo(u), "nothing holds it, and a hold left the setting "+setting+" on it", next)
}
