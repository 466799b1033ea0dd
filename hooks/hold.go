package hooks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	holdTimeout = 10 * time.Minute
	// holdInterval is the time between two looks.
	holdInterval = 2 * time.Second
)

const holdLong = `Hold pauses every claim, XR and managed resource in a namespace, or in the whole cluster, so that another cluster can adopt them.
It goes from the claims down, so nothing is composed while it works. A user's own pauses stay.

It waits until nothing writes to the cloud any more: an object whose creation, deletion or asynchronous operation is under way is paused when that is over,
and each controller has to report the pause. It then looks a second time. Objects that appear meanwhile are held too.

It is safe to run again, and to stop: what is held stays held. Then back up and restore in the other cluster, which adopts everything. To go on here instead,
make sure that no other cluster has adopted anything, then run "release -n NAMESPACE".

It can't stop the controllers of objects that Crossplane composes and that are no managed resources, and names such kinds.

It exits with 0 if everything is quiet, 3 if an object can't be held, and 4 after the timeout. See docs/moving.md.`

const holdExample = `  # Which objects would be held, and what is under way?
  ` + Name + ` hold -n team-a --dry-run

  # Hold a namespace
  ` + Name + ` hold -n team-a

  # Hold the whole cluster
  ` + Name + ` hold -A`

// A hold holds the flags of hold and what it has seen.
type hold struct {
	*options

	out            output
	dryRun         bool
	timeout, pause time.Duration

	cluster *live.Cluster
	adopter *live.Adopter
	key     adoption.Key
	// steps are the steps taken, by object, and taken is their number.
	steps map[xp.ID][]string
	taken int
	// recent are the objects that the current look has held.
	recent map[xp.ID]bool
	// settled are the UIDs of the last look if time could change nothing; nil if it could.
	settled map[types.UID]bool
	// printed is the last progress message.
	printed string
}

func newHold(o *options) *cobra.Command {
	h := &hold{options: o, pause: holdInterval, steps: map[xp.ID][]string{}}
	c := &cobra.Command{
		Use:     "hold {-n NAMESPACE | -A}",
		Short:   "Hold a live namespace or cluster, for a move to another cluster",
		Long:    holdLong,
		Example: holdExample,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.namespace == "" && !o.all {
				return errors.New("cannot tell what to hold: give a namespace with -n, or the whole cluster with -A")
			}
			if h.timeout < 0 {
				return fmt.Errorf("cannot wait for %s", h.timeout)
			}

			return o.inCluster(c, h.run)
		},
	}
	c.Flags().BoolVar(&h.dryRun, "dry-run", false, "print what it would do, and change nothing")
	c.Flags().DurationVar(&h.timeout, "timeout", holdTimeout, "how long to wait until everything is quiet")
	_ = h.out.addTo(c, resultFormats()...) // It fails only if the flag is there already.

	return c
}

func (h *hold) run(ctx context.Context, cluster *live.Cluster) error {
	h.cluster = cluster
	h.adopter = live.NewAdopter(h.cluster, newLogger(h.Err)).OnStep(h.onStep)
	if h.dryRun {
		return h.preview(ctx)
	}
	var err error
	if h.key, err = h.cluster.MarkKey(ctx, h.velero); err != nil {
		return err
	}
	deadline := time.Now().Add(h.timeout)
	for {
		s, err := h.look(ctx, deadline)
		if err != nil {
			return err
		}
		late := !time.Now().Before(deadline)
		switch isSettled := s.isSettled && maps.Equal(s.uids, h.settled); {
		case isSettled:
			return h.finish(s, nil)
		case late:
			return h.finish(s, reason.TimedOut.Errorf("cannot wait longer than %s: what is held stays held; check above what it waits for, then run it again",
				h.timeout))
		}
		if h.settled = nil; s.isSettled {
			h.settled = s.uids
		}
		if sleep(ctx, h.pause) != nil {
			return reason.Interrupted.Errorf("cannot wait until everything is quiet: it was interrupted; what is held stays held; run it again")
		}
	}
}

// A holdLook is what one look at the scope has found.
type holdLook struct {
	*scope

	// isSettled is set if the look has held nothing and there is nothing that can end by itself.
	isSettled bool
	uids      map[types.UID]bool
	// why is why an object is not quiet. unheld are the objects that can't be held.
	why    map[xp.ID]reason.Message
	unheld map[xp.ID]bool
}

// look reads the scope and holds what is not held.
func (h *hold) look(ctx context.Context, deadline time.Time) (*holdLook, error) {
	limited, cancel := context.WithTimeout(ctx, max(time.Until(deadline), waitRequest))
	defer cancel()
	sc, err := h.scopeOf(limited, h.cluster)
	if err != nil {
		return nil, err
	}
	before := h.taken
	h.recent = map[xp.ID]bool{}
	for _, level := range sc.levels {
		if err := h.adopter.HoldLive(limited, h.key, level); err != nil {
			return nil, err
		}
	}
	l := &holdLook{scope: sc, why: map[xp.ID]reason.Message{}, unheld: map[xp.ID]bool{}, uids: map[types.UID]bool{}}
	for _, u := range sc.all() {
		id := xp.RefTo(u).ID()
		l.uids[u.GetUID()] = true
		if why := h.whyNotQuiet(u); !why.IsZero() {
			l.why[id] = why
		}
		if _, err := h.key.HoldOf(u); err != nil {
			l.unheld[id] = true
		}
	}
	l.isSettled = h.taken == before && len(l.why) == len(l.unheld)
	h.progress(l)

	return l, nil
}

// whyNotQuiet returns why an object is not quiet, or why it can't be held at all.
func (h *hold) whyNotQuiet(u *unstructured.Unstructured) reason.Message {
	if h.recent[xp.RefTo(u).ID()] {
		return reason.AwaitingPauseReport.Messagef("it was paused just now")
	}
	if _, why := h.key.HoldLive(u, time.Now()); !why.IsZero() {
		return why
	}

	return h.key.WhyNotQuiet(u)
}

func (h *hold) onStep(change adoption.Change) {
	h.taken++
	id := xp.RefTo(change.Target).ID()
	h.recent[id] = true
	h.steps[id] = append(h.steps[id], change.Step)
	if !change.Warning.IsZero() {
		fmt.Fprintln(h.Err, "warning:", change.Warning)
	}
}

// progress prints how many objects are quiet, and the first that is not, if that has changed.
func (h *hold) progress(l *holdLook) {
	all := l.all()
	line := fmt.Sprintf("%d of %d objects are quiet", len(all)-len(l.why), len(all))
	if n := slices.IndexFunc(all, func(u *unstructured.Unstructured) bool { return !l.why[xp.RefTo(u).ID()].IsZero() }); n >= 0 {
		line += "; waiting for " + xp.String(all[n]) + ": " + l.why[xp.RefTo(all[n]).ID()].String()
	}
	if line != h.printed {
		h.printed = line
		fmt.Fprintln(h.Err, time.Now().UTC().Format(time.RFC3339), line)
	}
}

func (h *hold) preview(ctx context.Context) error {
	sc, err := h.scopeOf(ctx, h.cluster)
	if err != nil {
		return err
	}
	l := &holdLook{scope: sc, why: map[xp.ID]reason.Message{}}
	for _, u := range sc.all() {
		change, why := adoption.Unverified.HoldLive(u, time.Now())
		switch {
		case !why.IsZero():
			l.why[xp.RefTo(u).ID()] = why
		case change.Patch != nil:
			h.steps[xp.RefTo(u).ID()] = []string{change.Step}
		}
	}

	return h.finish(l, nil)
}

// finish prints the result of a look.
func (h *hold) finish(l *holdLook, timeout error) error {
	r := &report.Report{Kind: report.KindHold, Source: h.cluster.Name(), Time: time.Now().UTC().Truncate(time.Second)}
	problems := l.problems()
	for _, u := range l.all() {
		ref := xp.RefTo(u)
		one := report.Release{Object: ref, Result: report.Quiet, Steps: h.steps[ref.ID()]}
		why, waits := l.why[ref.ID()]
		switch {
		case waits:
			one.Result, one.Code, one.Reason = report.Waiting, why.Code, why.String()
			if one.Next = "when that is over, run the same again"; l.unheld[ref.ID()] {
				one.Next = "repair that, and run the same again"
			}
			problems = append(problems, report.Problem{Code: why.Code, Severity: report.Error, Object: ref, Reason: one.Reason, Next: one.Next})
		case len(one.Steps) == 0:
			one.Steps = []string{"it was held already"}
		case h.dryRun:
			one.Result = report.WouldHold
		}
		if hold, err := adoption.HoldOf(u); err == nil && hold != nil {
			one.Restore, one.Settings = hold.Restore, adoption.Settings(hold)
		}
		r.Releases = append(r.Releases, one)
	}
	r.Assemble(nil, problems)
	if err := h.print(r, h.out); err != nil {
		return err
	}
	if timeout != nil {
		return &exit{code: ExitTimeout, err: timeout}
	}

	return exitFor(r.Summary.Problems)
}
