package hooks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// forceRest lifts by force the holds that no held object below keeps on, if the user agrees. It
// reports whether it lifted one.
func (r *releaseRun) forceRest(ctx context.Context, last plans) (bool, error) {
	roots := r.roots(last)
	if len(roots) == 0 {
		return false, nil
	}
	assessed, err := r.assessForce(ctx, r.selector(), roots)
	if err != nil {
		return false, err
	}
	roots = slices.DeleteFunc(roots, func(h *held) bool {
		f := assessed[h.Object.ID()]
		if !f.Refused.IsZero() {
			h.because(f.Refused)
		}

		return f.Patch == nil
	})
	if len(roots) == 0 {
		return false, nil
	}
	r.warn(roots, assessed)
	agreed, err := ask(ctx, r.options, r.yes, fmt.Sprintf("Lift %s all the same?", printer.Counted(len(roots), "hold")))
	if err != nil || !agreed {
		return false, err
	}
	// The user has agreed to the risks that were shown: assess again, and skip what has changed.
	now, err := r.assessForce(ctx, r.selector(), roots)
	if err != nil {
		return false, err
	}
	some := false
	for _, h := range roots {
		before, f := assessed[h.Object.ID()], now[h.Object.ID()]
		if f.Patch == nil {
			continue
		}
		if !slices.Equal(before.Risks, f.Risks) {
			h.because(reason.ChangedSinceConfirmed.Messagef("it has changed since you confirmed it, so it was not released: %s", reason.Join(f.Risks)))

			continue
		}
		if err := r.adopter.Force(ctx, f); err != nil {
			h.because(messageOf(err))

			continue
		}
		h.Risks = reason.Strings(f.Risks)
		r.forced[h.Object.ID()], some = true, true
	}

	return some, nil
}

// roots returns the objects that are still held and wait for no held object. Blocked or failed ones
// come first; without any it returns the others.
func (r *releaseRun) roots(last plans) []*held {
	var left []*held
	for _, blocked := range []bool{true, false} {
		for _, h := range r.due {
			p, ok := last[h.Object.ID()]
			if ok && !h.schedule && !p.Done && !r.forced[h.Object.ID()] && (p.Blocked || !p.Failed.IsZero()) == blocked {
				left = append(left, h)
			}
		}
		if len(left) > 0 {
			break
		}
	}
	above := map[*held]bool{}
	for _, h := range left {
		for p := h.parent; p != nil; p = p.parent {
			above[p] = true
		}
	}

	return slices.DeleteFunc(left, func(h *held) bool { return above[h] })
}

// assessForce returns the effect and risks of lifting holds by force, by object.
func (r *release) assessForce(ctx context.Context, selector string, some []*held) (map[xp.ID]adoption.ForceAssessment, error) {
	assessed, err := r.adopter.AssessForce(ctx, r.key, selector, refsOf(some))
	if err != nil || len(r.busy) == 0 {
		return assessed, err
	}
	for id, f := range assessed {
		f.Risks = append(f.Risks, reason.RestoreRunning.Messagef("a Restore is running, and can still restore missing objects: %s", strings.Join(r.busy, ", ")))
		assessed[id] = f
	}

	return assessed, nil
}

func (r *release) warn(roots []*held, assessed map[xp.ID]adoption.ForceAssessment) {
	r.logf("")
	r.logf("These are held because objects or values of the backup are missing. Without their holds:")
	for _, h := range roots {
		f := assessed[h.Object.ID()]
		r.logf("%s", h.Object)
		if len(f.Risks) == 0 {
			r.logf("  - no risk is known")
		}
		for _, risk := range f.Risks {
			r.logf("  - %s", risk)
		}
		for _, setting := range f.Settings {
			r.logf("  - its own setting comes back: %s", setting)
		}
	}
}
