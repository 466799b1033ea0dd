package hooks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/vmware-tanzu/velero/pkg/label"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adopter"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	// maxErrors is the number of API errors in a row that stops a release.
	maxErrors = 3
	// lastLookTimeout is how long the last round may run past the timeout.
	lastLookTimeout = 30 * time.Second
)

type plans = map[xp.ID]adoption.Plan

// A releaseRun lifts holds in rounds.
type releaseRun struct {
	*release

	due      []*held
	deadline time.Time
	// steps counts the steps taken. progress is a fingerprint of the last round, and changed the
	// time of its last change.
	steps    int
	progress string
	changed  time.Time
	// reported is the last message about each object.
	reported map[xp.ID]string
	// forced are the objects whose hold was lifted by force.
	forced map[xp.ID]bool
}

// lift lifts the holds and sets their results. It returns context.DeadlineExceeded if the time is
// up before all are lifted.
func (r *release) lift(ctx context.Context) error {
	due := r.holds.due()
	if len(due) == 0 {
		return nil
	}
	l := &releaseRun{release: r, due: due, deadline: time.Now().Add(r.timeout), changed: time.Now(), reported: map[xp.ID]string{}, forced: map[xp.ID]bool{}}
	r.adopter = adopter.New(r.cluster, newLogger(r.Err)).OnStep(l.onStep)
	limited, cancel := context.WithTimeout(ctx, r.timeout+lastLookTimeout)
	defer cancel()
	last, err := l.liftAll(limited)
	if ctx.Err() != nil {
		return reason.Interrupted.Errorf("cannot go on: it was interrupted; objects that are not released yet stay held")
	}
	if judgeErr := l.conclude(ctx, last); judgeErr != nil {
		return judgeErr
	}

	return err
}

// newLogger returns a log for warnings on w. Steps are printed by onStep.
func newLogger(w io.Writer) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(w)
	log.SetLevel(logrus.WarnLevel)
	log.SetFormatter(dedupFormatter{})

	return log
}

// A dedupFormatter formats log entries as lines and drops repeated ones. Logrus formats one entry at
// a time, so the map needs no lock.
type dedupFormatter map[string]bool

// Format returns an entry as a line, or nil if it was printed before.
func (printed dedupFormatter) Format(e *logrus.Entry) ([]byte, error) {
	parts := []string{e.Level.String() + ": " + e.Message}
	for _, key := range slices.Sorted(maps.Keys(e.Data)) {
		parts = append(parts, fmt.Sprintf("%s: %v", key, e.Data[key]))
	}

	line := strings.Join(parts, "; ") + "\n"
	if printed[line] {
		return nil, nil
	}
	printed[line] = true

	return []byte(line), nil
}

// liftAll lifts what can be lifted safely, and the rest with --force.
func (r *releaseRun) liftAll(ctx context.Context) (plans, error) {
	var quarantined []*unstructured.Unstructured
	for _, h := range r.due {
		if h.quarantined {
			quarantined = append(quarantined, h.object)
		}
	}
	if err := r.adopter.ConsentAll(ctx, r.key, quarantined); err != nil {
		return nil, err
	}
	if err := r.releaseSchedules(ctx); err != nil {
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

func (r *releaseRun) onStep(change hold.Change) {
	r.steps++
	r.logf("%s: %s", xp.String(change.Target), change.Step)
	if h := r.holds.byID[xp.RefTo(change.Target).ID()]; h != nil {
		h.Steps = append(h.Steps, change.Step)
	}
}

// selector returns a label selector for the objects of the Restores whose holds are lifted. It only
// saves listing other objects.
func (r *releaseRun) selector() string {
	_, name, _ := strings.Cut(r.due[0].Restore, "/")
	if name == "" || slices.ContainsFunc(r.due, func(h *held) bool { return h.Restore != r.due[0].Restore }) {
		return xp.LabelRestore
	}

	return labels.Set{xp.LabelRestore: label.GetValidName(name)}.String()
}

// releaseSchedules lifts the holds of the named schedules.
func (r *releaseRun) releaseSchedules(ctx context.Context) error {
	schedules := slices.DeleteFunc(slices.Clone(r.due), func(h *held) bool { return !h.schedule })
	if len(schedules) == 0 {
		return nil
	}
	assessed, err := r.adopter.AssessForce(ctx, r.key, xp.LabelRestore, refsOf(schedules))
	if err != nil {
		return err
	}
	for _, h := range schedules {
		if f := assessed[h.Object.ID()]; f.Patch != nil {
			if err := r.adopter.Force(ctx, f); err != nil {
				return err
			}
		}
	}

	return nil
}

// adopt runs adoption rounds until everything is adopted or nothing changes any more.
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
			r.logf("trying again: %v", err)
		}
		if !time.Now().Before(r.deadline) {
			return last, context.DeadlineExceeded
		}
		if err := sleep(ctx, r.pause); err != nil {
			return last, err
		}
	}
}

// logWaiting prints the causes that have changed since the last round.
func (r *releaseRun) logWaiting(now plans) {
	known := []string{strconv.Itoa(r.steps)}
	for _, h := range r.due {
		p := now[h.Object.ID()]
		known = append(known, fmt.Sprint(p.Done, p.Adopted, p.Fingerprint()))
		what := p.Fingerprint()
		if p.Done || len(p.Waiting) == 0 || r.reported[h.Object.ID()] == what || xp.IsClaim(h.object) {
			continue
		}
		r.reported[h.Object.ID()] = what
		r.logf("%s: waiting for %s", h.Object, adoption.FirstReasons(p.Waiting))
	}
	if all := strings.Join(known, "\n"); all != r.progress {
		r.progress, r.changed = all, time.Now()
	}
}

// isOver reports whether everything is adopted or has failed, or a blocked object has seen no
// progress for a while. With --force lack of progress alone ends the rounds.
func (r *releaseRun) isOver(now plans) bool {
	over, blocked := true, false
	for _, h := range r.due {
		if p := now[h.Object.ID()]; !h.schedule && !p.Done {
			over = over && !p.Failed.IsZero()
			blocked = blocked || p.Blocked || !p.Failed.IsZero()
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

// conclude reads the objects again and sets their results.
func (r *releaseRun) conclude(ctx context.Context, last plans) error {
	objects, err := r.cluster.Read(ctx, refsOf(r.due), r.namespace)
	if err != nil {
		return err
	}
	for _, h := range r.due {
		p, id := last[h.Object.ID()], h.Object.ID()
		u := objects[id]
		if u == nil {
			h.Result = report.LeftAlone
			h.because(reason.NotFound.Messagef("it does not exist any more"))

			continue
		}
		mark, err := hold.Of(u)
		switch {
		case err != nil:
			h.Result, h.Next = report.StillHeld, howToRead(err)
			h.because(unreadable(err))
		case mark != nil:
			h.Result = report.StillHeld
			if h.Reason == "" {
				h.Code, h.Reason = whyHeld(p, mark)
			}
			h.Next = nextAfterFix(h)
		case !h.schedule && !p.Done:
			h.Result, h.Reason = report.Unproven, "it is released; waiting for "+adoption.FirstReasons(p.Waiting)
			h.Next = "check whether Crossplane and its provider run: " + xp.ValidateCommand(h.Object).String()
		case r.forced[id]:
			h.Result = report.Forced
		default:
			h.Result = report.Released
		}
	}

	return nil
}

// howToRead returns what to do about a mark that cannot be read.
func howToRead(err error) string {
	if errors.Is(err, hold.ErrNewer) {
		return hold.HowToRead + ", and run release again"
	}

	return "remove that annotation, and crossplane.io/paused if it should not be paused, then run release again"
}

func nextAfterFix(h *held) string {
	return "repair that, then run: " + xp.ReleaseCommand(h.Object).String() + " (add --force --dry-run to see the risks of a release without it)"
}

// whyHeld returns why an object stays held, with the first code; "" if the reason has it alone.
func whyHeld(p adoption.Plan, mark *hold.Hold) (code reason.Code, why string) {
	switch {
	case !p.Failed.IsZero():
		return p.Failed.Code, p.Failed.String()
	case len(p.Waiting) > 0:
		return p.Waiting[0].Code, "waiting for " + adoption.FirstReasons(p.Waiting)
	default:
		return "", mark.Reason
	}
}

func refsOf(some []*held) []xp.Ref {
	refs := make([]xp.Ref, 0, len(some))
	for _, h := range some {
		refs = append(refs, h.Object)
	}

	return refs
}
