package hooks

import (
	"context"
	"slices"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adopter"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// preview sets the results that a release would have. It changes nothing.
func (r *release) preview(ctx context.Context) error {
	due := r.holds.due()
	waits := map[*held]string{}
	plans := r.survey.PlansAfter(ctx, refsOf(slices.DeleteFunc(slices.Clone(due), func(h *held) bool { return !h.quarantined })))
	for _, h := range due {
		if h.schedule {
			h.Result, h.Steps = report.WouldRelease, []string{"give its own settings back"}

			continue
		}
		plan, planned := plans[h.Object.ID()]
		below := waits[h]
		_, forged := r.key.HoldOf(h.object)
		h.Result = report.WouldWait
		switch {
		case forged != nil:
			h.because(unreadable(forged))
		case !planned:
			h.because(reason.NotRead.Messagef("too few of its composed resources can be read"))
		case !plan.Failed.IsZero() || plan.Blocked:
			h.Code, h.Reason = whyHeld(plan, h.hold)
		case below != "":
			h.because(reason.HeldBelow.Messagef("waiting for %s", below))
		default:
			h.Result, h.Steps = report.WouldRelease, expected(h, plan)
		}
		if h.Result != report.WouldWait {
			continue
		}
		h.Next = nextAfterFix(h)
		if h.parent != nil && waits[h.parent] == "" {
			waits[h.parent] = h.Object.String() + ", which would stay held"
		}
	}
	if r.force {
		return r.previewForce(ctx, due, waits)
	}

	return nil
}

// expected returns the steps that lift a hold if nothing interferes.
func expected(h *held, plan adoption.Plan) []string {
	u, mark := h.object, h.hold
	ownPause := mark.Paused != nil && *mark.Paused == "true"
	var steps []string
	if step, ok := mark.AwaitsConsent(); ok {
		steps = append(steps, step)
	}
	if len(plan.Waiting) > 0 && !xp.IsClaim(u) {
		steps = append(steps, "wait for "+adoption.FirstReasons(plan.Waiting))
	}
	switch {
	case xp.IsComposite(u):
		if xp.IsPaused(u) && !ownPause {
			steps = append(steps, "unpause it under "+xp.CompositeFrom(u).Revision())
		}

		return append(steps, "give back its settings when it controls what it composes")
	case xp.IsManaged(u):
		if mark.Observes && xp.IsPaused(u) && !ownPause {
			steps = append(steps, "let its provider observe it")
		}

		return append(steps, "give its own settings back")
	default:
		return append(steps, "give back its settings when its XR is adopted")
	}
}

// previewForce sets the results that --force would have for holds that would stay on.
func (r *release) previewForce(ctx context.Context, due []*held, waits map[*held]string) error {
	left := slices.DeleteFunc(slices.Clone(due), func(h *held) bool { return h.Result != report.WouldWait })
	if len(left) == 0 {
		return nil
	}
	r.adopter = adopter.New(r.cluster, newLogger(r.Err))
	assessed, err := r.assessForce(ctx, xp.LabelRestore, left)
	if err != nil {
		return err
	}
	for _, h := range left {
		f := assessed[h.Object.ID()]
		if !f.Refused.IsZero() {
			h.Next = ""
			h.because(f.Refused)

			continue
		}
		risks := f.Risks
		if waits[h] != "" {
			// The objects below are lifted first, so their holds are no risk.
			risks = slices.DeleteFunc(slices.Clone(risks), func(risk reason.Message) bool { return risk.Code == reason.HeldBelow })
		}
		h.Next, h.Risks = "", reason.Strings(risks)
		if len(risks) == 0 && waits[h] != "" {
			h.Result, h.Code, h.Reason, h.Steps = report.WouldRelease, "", "", []string{"continue as without --force when the objects below are released"}

			continue
		}
		h.Result, h.Steps = report.WouldForce, []string{"give its own settings back at once"}
	}

	return nil
}
