package hooks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/vmware-tanzu/velero/pkg/label"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	// maxErrors is how many errors of the API server in a row are no reason to stop.
	maxErrors = 3
	// lastLookTimeout is for how long the last look may take.
	lastLookTimeout = 30 * time.Second
)

type plans = map[xp.ID]adoption.Plan

// A releaseRun is one run over what is held.
type releaseRun struct {
	*release

	due      []*held
	deadline time.Time
	// steps is how many were taken, and changed what was known when something last moved, and when
	// that was.
	steps   int
	known   string
	changed time.Time
	// reportedProblem is what was last said of each object.
	told map[xp.ID]string
	// forced are those that were lifted by force.
	forced map[xp.ID]bool
}

// lift lifts the holds, and says what became of each. It returns context.DeadlineExceeded if time
// was up before all were done.
func (r *release) lift(ctx context.Context) error {
	due := r.holds.due()
	if len(due) == 0 {
		return nil
	}
	l := &releaseRun{release: r, due: due, deadline: time.Now().Add(r.timeout), changed: time.Now(), told: map[xp.ID]string{}, forced: map[xp.ID]bool{}}
	r.adopter = live.NewAdopter(r.cluster, r.logger()).OnStep(l.stepped)
	limited, cancel := context.WithTimeout(ctx, r.timeout+lastLookTimeout)
	defer cancel()
	last, err := l.all(limited)
	if ctx.Err() != nil {
		return fmt.Errorf("cannot go on; what was not lifted yet is still held: %w", ctx.Err())
	}
	if judgeErr := l.conclude(ctx, last); judgeErr != nil {
		return judgeErr
	}

	return err
}

// logger tells a person of what went wrong meanwhile; steps are told in fewer words.
func (r *release) logger() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(r.Err)
	log.SetLevel(logrus.WarnLevel)
	log.SetFormatter(&dedupFormatter{last: map[string]bool{}})

	return log
}

// dedupFormatter is how a log looks to a person at a terminal, who need not be told the same at
// each look. Logrus formats one entry at a time.
type dedupFormatter struct {
	last map[string]bool
}

// Format returns what is logged as a line, or nothing if it was said before.
func (p *dedupFormatter) Format(e *logrus.Entry) ([]byte, error) {
	parts := []string{e.Level.String() + ": " + e.Message}
	for _, key := range slices.Sorted(maps.Keys(e.Data)) {
		parts = append(parts, fmt.Sprintf("%s: %v", key, e.Data[key]))
	}

	line := strings.Join(parts, "; ") + "\n"
	if p.last[line] {
		return nil, nil
	}
	p.last[line] = true

	return []byte(line), nil
}

// all lifts what can be lifted, and with --force the rest.
func (r *releaseRun) all(ctx context.Context) (plans, error) {
	for _, h := range r.due {
		if !h.kept {
			continue
		}
		if err := r.adopter.Consent(ctx, r.key, h.object); err != nil {
			return nil, err
		}
	}
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	last, err := r.adopt(ctx)
	for err == nil && r.force {
		var some bool
		if some, err = r.forceRest(ctx, last); err != nil || !some {
			break
		}
		last, err = r.adopt(ctx)
	}

	return last, err
}

func (r *releaseRun) stepped(change adoption.Change) {
	r.steps++
	r.say("%s: %s", xp.String(change.Target), change.Step)
	if h := r.holds.byID[xp.RefTo(change.Target).ID()]; h != nil {
		h.Steps = append(h.Steps, change.Step)
	}
}

// selector selects what the Restores have created that hold what is to be lifted. It only saves
// listing what else there is.
func (r *releaseRun) selector() string {
	for _, h := range r.due {
		if h.Restore != r.due[0].Restore {
			return xp.LabelRestore
		}
	}
	_, name, ok := strings.Cut(r.due[0].Restore, "/")
	if !ok || name == "" {
		return xp.LabelRestore
	}

	return labels.Set{xp.LabelRestore: label.GetValidName(name)}.String()
}

// start lets the schedules that were named start Operations again.
func (r *releaseRun) start(ctx context.Context) error {
	schedules := slices.DeleteFunc(slices.Clone(r.due), func(h *held) bool { return !h.schedule })
	if len(schedules) == 0 {
		return nil
	}
	foreseen, err := r.adopter.AssessForce(ctx, r.key, xp.LabelRestore, refsOf(schedules))
	if err != nil {
		return err
	}
	for _, h := range schedules {
		if f := foreseen[h.Object.ID()]; f.Patch != nil {
			if err := r.adopter.Force(ctx, f); err != nil {
				return err
			}
		}
	}

	return nil
}

// adopt carries on until everything is adopted or nothing moves any more.
func (r *releaseRun) adopt(ctx context.Context) (plans, error) {
	var last plans
	refs := refsOf(slices.DeleteFunc(slices.Clone(r.due), func(h *held) bool { return h.schedule }))
	if len(refs) == 0 {
		return last, nil
	}
	r.changed = time.Now()
	for failures := 0; ; {
		now, err := r.adopter.AdoptOnly(ctx, r.key, r.selector(), refs)
		switch {
		case err == nil:
			last, failures = now, 0
			r.logWaiting(last)
			if r.isOver(last) {
				return last, nil
			}
		case ctx.Err() != nil:
			return last, ctx.Err()
		case apierrors.IsForbidden(err), failures+1 >= maxErrors:
			return last, err
		default:
			failures++
			r.say("trying again: %v", err)
		}
		if !time.Now().Before(r.deadline) {
			return last, context.DeadlineExceeded
		}
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-time.After(r.pause):
		}
	}
}

// logWaiting says what is waited for where that has changed.
func (r *releaseRun) logWaiting(now plans) {
	known := []string{strconv.Itoa(r.steps)}
	for _, h := range r.due {
		p := now[h.Object.ID()]
		known = append(known, fmt.Sprint(p.Done, p.Failed, p.Adopted, p.Causes))
		what := fmt.Sprint(p.Failed, p.Causes)
		if p.Done || len(p.Waiting) == 0 || r.told[h.Object.ID()] == what || xp.IsClaim(h.object) {
			continue
		}
		r.told[h.Object.ID()] = what
		r.say("%s: waiting for %s", h.Object, adoption.FirstReasons(p.Waiting))
	}
	if all := strings.Join(known, "\n"); all != r.known {
		r.known, r.changed = all, time.Now()
	}
}

// isOver reports whether everything is adopted, or what is not waits for something that does not
// come by itself, and nothing has moved for a while.
func (r *releaseRun) isOver(now plans) bool {
	over, blocked := true, false
	for _, h := range r.due {
		if p := now[h.Object.ID()]; !h.schedule && !p.Done {
			over = over && p.Failed != ""
			blocked = blocked || p.Blocked || p.Failed != ""
		}
	}
	still := time.Since(r.changed)
	switch {
	case over:
		return true
	case blocked:
		return still >= r.settle
	default:
		return r.force && still >= 2*r.settle
	}
}

// conclude finds out what became of each.
func (r *releaseRun) conclude(ctx context.Context, last plans) error {
	objects, err := r.cluster.Read(ctx, refsOf(r.due), r.namespace)
	if err != nil {
		return err
	}
	for _, h := range r.due {
		p, id := last[h.Object.ID()], h.Object.ID()
		u := objects[id]
		if u == nil {
			h.Result, h.Reason = report.LeftAlone, "it does not exist any more"

			continue
		}
		hold, err := adoption.HoldOf(u)
		switch {
		case err != nil:
			h.Result, h.Reason, h.Next = report.StillHeld, err.Error(), howToRead(err)
		case hold != nil:
			h.Result = report.StillHeld
			if h.Reason == "" {
				h.Reason = whyHeld(p, hold)
			}
			h.Next = afterMending(h)
		case !h.schedule && !p.Done:
			h.Result, h.Reason = report.Unproven, "its hold is off; waiting for "+adoption.FirstReasons(p.Waiting)
			h.Next = "see whether Crossplane and its provider run: " + xp.ValidateCommand(h.Object).String()
		case r.forced[id]:
			h.Result = report.Forced
		default:
			h.Result = report.Released
		}
	}

	return nil
}

// howToRead is what to do about a mark that can't be read.
func howToRead(err error) string {
	if errors.Is(err, adoption.ErrNewer) {
		return adoption.HowToRead + ", and run release again"
	}

	return "remove that annotation, and crossplane.io/paused if it is not to be paused, and run release again"
}

func afterMending(h *held) string {
	return "mend that, and run: " + xp.ReleaseCommand(h.Object).String() + " (to see what doing without it can cost, with --force --dry-run)"
}

func whyHeld(p adoption.Plan, hold *adoption.Hold) string {
	switch {
	case p.Failed != "":
		return p.Failed
	case len(p.Waiting) > 0:
		return "waiting for " + adoption.FirstReasons(p.Waiting)
	default:
		return hold.Reason
	}
}

func refsOf(some []*held) []xp.Ref {
	refs := make([]xp.Ref, 0, len(some))
	for _, h := range some {
		refs = append(refs, h.Object)
	}

	return refs
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}

	return fmt.Sprintf("%d %ss", n, what)
}
