package diagnosis

import (
	"cmp"
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
	r, how, why := xp.RefTo(u), adoption.HowToRelease(u, h), adoption.Why(u, h)
	next := cmp.Or(how, "provide what it waits for, then run: "+xp.ReleaseCommand(r).String())
	plan := d.Plans[r.ID()]
	switch {
	case !plan.Failed.IsZero():
		why = adoption.WithoutNext(plan.Failed.String(), how)
	case len(plan.Waiting) > 0:
		why = "waiting for " + adoption.WithoutNext(d.shortened(plan.Waiting[0]).String(), how)
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
