package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adopter"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
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

// A holder holds the flags of hold and what it has seen.
type holder struct {
	*options

	out            output
	dryRun         bool
	timeout, pause time.Duration

	cluster *cluster.Cluster
	adopter *adopter.Adopter
	key     hold.Key
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
	h := &holder{options: o, pause: holdInterval, steps: map[xp.ID][]string{}}
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
	h.out.addTo(c, resultFormats()...)

	return c
}

func (h *holder) run(ctx context.Context, cluster *cluster.Cluster) (err error) {
	h.cluster = cluster
	h.adopter = adopter.New(h.cluster, newLogger(h.Err)).OnStep(h.onStep)
	h.key = hold.Unverified
	if !h.dryRun {
		if h.key, err = h.cluster.MarkKey(ctx, h.velero); err != nil {
			return err
		}
	}
	deadline := time.Now().Add(h.timeout)
	for {
		l, err := h.look(ctx, deadline)
		if err != nil {
			return err
		}
		if h.dryRun {
			return h.finish(l, nil)
		}
		h.progress(l)
		if l.isSettled && maps.Equal(l.uids, h.settled) {
			return h.finish(l, nil)
		}
		if !time.Now().Before(deadline) {
			return h.finish(l, reason.TimedOut.Errorf("cannot wait longer than %s: what is held stays held; check above what it waits for, then run it again",
				h.timeout))
		}
		if h.settled = nil; l.isSettled {
			h.settled = l.uids
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

// look reads the scope and holds what is not held. A dry run records what it would hold.
func (h *holder) look(ctx context.Context, deadline time.Time) (*holdLook, error) {
	limited, cancel := context.WithTimeout(ctx, max(time.Until(deadline), waitRequest))
	defer cancel()
	sc, err := h.scopeOf(limited, h.cluster)
	if err != nil {
		return nil, err
	}
	before := h.taken
	h.recent = map[xp.ID]bool{}
	for _, level := range sc.levels {
		if h.dryRun {
			break
		}
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

	return l, nil
}

// whyNotQuiet returns why an object is not quiet, or why it can't be held at all.
func (h *holder) whyNotQuiet(u *unstructured.Unstructured) reason.Message {
	id := xp.RefTo(u).ID()
	if h.recent[id] {
		return reason.AwaitingPauseReport.Messagef("it was paused just now")
	}
	change, why := h.key.HoldLive(u, time.Now())
	if !h.dryRun && why.IsZero() {
		return h.key.WhyNotQuiet(u)
	}
	if change.Patch != nil {
		h.steps[id] = []string{change.Step}
	}

	return why
}

func (h *holder) onStep(change hold.Change) {
	h.taken++
	id := xp.RefTo(change.Target).ID()
	h.recent[id] = true
	h.steps[id] = append(h.steps[id], change.Step)
	if !change.Warning.IsZero() {
		fmt.Fprintln(h.Err, "warning:", change.Warning)
	}
}

// progress prints how many objects are quiet, and the first that is not, if that has changed.
func (h *holder) progress(l *holdLook) {
	all := l.all()
	line := fmt.Sprintf("%d of %d objects are quiet", len(all)-len(l.why), len(all))
	waits := func(u *unstructured.Unstructured) bool { return !l.why[xp.RefTo(u).ID()].IsZero() }
	if n := slices.IndexFunc(all, waits); n >= 0 {
		line += "; waiting for " + xp.String(all[n]) + ": " + l.why[xp.RefTo(all[n]).ID()].String()
	}
	if line != h.printed {
		h.printed = line
		fmt.Fprintln(h.Err, time.Now().UTC().Format(time.RFC3339), line)
	}
}

// finish prints the result of a look.
func (h *holder) finish(l *holdLook, timeout error) error {
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
		if mark, err := hold.Of(u); err == nil && mark != nil {
			one.Restore, one.Settings = mark.Restore, hold.Settings(mark)
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

// A scope is what the command hold is about.
type scope struct {
	survey *adopter.Survey
	// levels are the claims, the XRs from the roots down, the schedules, and the MRs.
	levels [][]*unstructured.Unstructured
	// others are the composed objects that no hold can stop, one of each kind.
	others []xp.Ref

	claims, managed []*unstructured.Unstructured
	// xrs are the XRs by their depth in their trees.
	xrs  map[int][]*unstructured.Unstructured
	seen map[xp.ID]bool
}

func (sc *scope) all() []*unstructured.Unstructured { return slices.Concat(sc.levels...) }

// scopeOf reads the trees in the namespace, or all. It fails if there are none.
func (o *options) scopeOf(ctx context.Context, cluster *cluster.Cluster) (*scope, error) {
	s, err := adopter.ReadSurvey(ctx, cluster, adopter.Scope{Namespace: o.namespace, Velero: o.velero})
	if err != nil {
		return nil, err
	}
	sc := &scope{survey: s, xrs: map[int][]*unstructured.Unstructured{}, seen: map[xp.ID]bool{}}
	for _, root := range s.Trees() {
		sc.visit(root, 0)
	}
	for _, u := range s.All() {
		if _, isComposed := xp.Controller(u); xp.IsUntouched(u) && !isComposed {
			sc.managed = append(sc.managed, u) // Nothing shows yet that it is a tree of its own.
		}
	}
	var schedules []*unstructured.Unstructured
	where := "the namespace " + o.namespace
	if o.namespace == "" {
		where = "this cluster"
		if schedules, err = cluster.Schedules(ctx); err != nil {
			return nil, err
		}
	}
	sc.levels = [][]*unstructured.Unstructured{sc.claims}
	for _, depth := range slices.Sorted(maps.Keys(sc.xrs)) {
		sc.levels = append(sc.levels, sc.xrs[depth])
	}
	sc.levels = append(sc.levels, schedules, sc.managed)
	if len(sc.all()) == 0 && len(s.UnreadKinds()) == 0 {
		return nil, reason.NotFound.Errorf("cannot find a claim, an XR or a managed resource in %s; check -n and --context", where)
	}

	return sc, nil
}

// visit adds the objects of a tree.
func (sc *scope) visit(n *report.Node, depth int) {
	u := sc.survey.Get(n.Ref)
	if u == nil || n.State == report.Foreign || sc.seen[n.ID()] {
		return
	}
	sc.seen[n.ID()] = true
	switch gk := n.GroupVersionKind().GroupKind(); {
	case xp.IsClaim(u):
		sc.claims = append(sc.claims, u)
	case xp.IsComposite(u):
		sc.xrs[depth] = append(sc.xrs[depth], u)
	case xp.IsManaged(u), xp.IsUntouched(u):
		sc.managed = append(sc.managed, u)
	case !xp.IsCustomGroup(gk.Group), xp.IsCrossplaneGroup(gk.Group), xp.IsUsage(u):
	case !slices.ContainsFunc(sc.others, func(r xp.Ref) bool { return r.GroupVersionKind().GroupKind() == gk }):
		sc.others = append(sc.others, n.Ref)
	}
	for _, child := range n.Children {
		sc.visit(child, depth+1)
	}
}

// problems returns what could not be read, and the kinds whose controllers go on.
func (sc *scope) problems() []report.Problem {
	var problems []report.Problem
	unread := sc.survey.UnreadKinds()
	byName := func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) }
	for _, gk := range slices.SortedFunc(maps.Keys(unread), byName) {
		problems = append(problems, report.Problem{
			Code: reason.NotRead, Severity: report.Error, Object: xp.Ref{Kind: gk.String()},
			Reason: reason.NotRead.Messagef("objects of this kind can't be read, so some can go on: %s", unread[gk]).String(),
			Next:   "give the rights in example/rbac/hold.yaml, or repair what serves the kind",
		})
	}
	for _, r := range sc.others {
		problems = append(problems, report.Problem{
			Code: reason.OthersCompose, Severity: report.Warning, Object: r,
			Reason: reason.OthersCompose.Messagef("an XR composes it and others of its kind, and neither Crossplane nor a provider reconciles them; a hold does not " +
				"stop their controller").String(),
			Next: "if that controller writes to the cloud, stop it during the move",
		})
	}

	return problems
}
