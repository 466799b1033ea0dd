package diagnosis

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkHolds finds held objects, whether or not their Restore is under way.
func (d *diagnosis) checkHolds() {
	for _, o := range d.sortedAll() {
		u := o.full()
		if !o.is(isMarked) {
			d.checkLeftover(u)

			continue
		}
		h, err := adoption.HoldOf(u)
		r := xp.RefTo(u)
		switch {
		case errors.Is(err, adoption.ErrNewer):
			d.add(reason.Malformed, report.Error, r, err.Error(), adoption.HowToRead+", and then run release")
		case err != nil:
			d.add(reason.Malformed, report.Error, r, err.Error(), "correct or remove that annotation, and then run release")
		case h != nil:
			d.addHeld(u, h)
		}
	}
}

func (d *diagnosis) addHeld(u *unstructured.Unstructured, h *adoption.Hold) {
	how := adoption.HowToRelease(u, h)
	why := adoption.Why(u, h)
	plan, planned := d.Plans[xp.RefTo(u).ID()]
	switch {
	case !plan.Failed.IsZero():
		why = adoption.WithoutNext(plan.Failed.String(), how)
	case planned && len(plan.Waiting) > 0:
		why = "waiting for " + adoption.WithoutNext(d.shortened(plan.Waiting[0]).String(), how)
		if n := len(plan.Waiting) - 1; n > 0 {
			why += fmt.Sprintf(" (and %d more)", n)
		}
	}
	held := fmt.Sprintf("held by %s since %s: %s", h.By(), h.Since, why)
	phase, known := d.Restores[h.Restore]
	switch {
	case h.IsByCommand():
		d.add(reason.HeldByCommand, report.Error, xp.RefTo(u), held, how)
	case h.Quarantine:
		d.add(reason.Quarantined, report.Error, xp.RefTo(u), "the Restore "+h.Restore+" put it in quarantine at "+h.Since+": nothing reconciles it", how)
	case h.ByHand:
		d.add(reason.Held, report.Error, xp.RefTo(u), held, how)
	case h.Restore == "":
		d.add(reason.LeakedHold, report.Error, xp.RefTo(u), "held since "+h.Since+": "+why, releaseHint(u, h))
	case phase == PhaseUnread:
		d.add(reason.Held, report.Error, xp.RefTo(u), held, "the Restores could not be read; if that one has ended, "+releaseHint(u, h))
	case !known:
		d.add(reason.LeakedHold, report.Error, xp.RefTo(u), held+"; that Restore does not exist", releaseHint(u, h))
	case !IsUnderWay(phase):
		d.add(reason.LeakedHold, report.Error, xp.RefTo(u), held+"; that Restore has ended as "+phase, releaseHint(u, h))
	default:
		d.add(reason.Held, report.Error, xp.RefTo(u), held,
			"the restore continues when that exists; see: "+xp.DescribeRestore(restoreName(h.Restore)).String())
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

// restoreName returns the name of a Restore without its namespace, as the velero command expects
// it.
func restoreName(restore string) string {
	_, name, _ := strings.Cut(restore, "/")

	return name
}

func releaseHint(u *unstructured.Unstructured, h *adoption.Hold) string {
	if how := adoption.HowToRelease(u, h); how != "" {
		return how
	}

	return "provide what it waits for, then run: " + xp.ReleaseCommand(xp.RefTo(u)).String()
}

// PhaseUnread stands for the phase of a Restore that could not be read.
const PhaseUnread = "Unread"

// IsUnderWay reports whether Velero still works on a Restore with the phase. Its operations lift
// its holds.
func IsUnderWay(phase string) bool {
	switch phase {
	case "", "New", "InProgress", "WaitingForPluginOperations", "WaitingForPluginOperationsPartiallyFailed", "Finalizing", "FinalizingPartiallyFailed":
		return true
	default:
		return false
	}
}

// checkLeftover finds a setting that a hold left on an object that is not held.
func (d *diagnosis) checkLeftover(u *unstructured.Unstructured) {
	setting := adoption.LeftoverSetting(u)
	if setting == "" {
		return
	}
	next := "give it the value that it had, or remove it if it had none, unless a user set it"
	if setting == xp.AnnotationPaused {
		next = "unless a user paused it, run: " + xp.Kubectl("annotate", xp.RefTo(u), setting+"-").String()
	}
	d.add(reason.LeakedHold, report.Error, xp.RefTo(u), "nothing holds it, and a hold left the setting "+setting+" on it", next)
}
