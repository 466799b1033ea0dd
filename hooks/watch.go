package hooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// watchInterval is the time between two validations.
const watchInterval = 2 * time.Second

// A watch repeats a validation until nothing is wrong.
type watch struct {
	*options

	on      bool
	timeout time.Duration
	pause   time.Duration
}

func (w *watch) addTo(c *cobra.Command) {
	w.pause = watchInterval
	c.Flags().BoolVarP(&w.on, "watch", "w", false, "repeat until there is no problem and no Restore runs, and show the progress on stderr")
	c.Flags().DurationVar(&w.timeout, "timeout", 0, "with --watch, for how long; 0 means without limit")
}

// check fails if the flags do not fit together.
func (w *watch) check() error {
	switch {
	case w.timeout < 0:
		return fmt.Errorf("cannot watch for %s", w.timeout)
	case w.timeout > 0 && !w.on:
		return errors.New("cannot use --timeout without --watch")
	default:
		return nil
	}
}

// A view shows progress on stderr.
type view interface {
	show(r *report.Report)
	// failed shows an error. The watch goes on.
	failed(err error)
	close()
}

// run repeats look until nothing is wrong, the time is up or the user interrupts it. It prints the
// last report. An error of the first look ends it: the kubeconfig can be wrong. A later error does
// not: the API server may be down for a while.
func (w *watch) run(ctx context.Context, out output, strict bool, look func(ctx context.Context) (*report.Report, error)) error {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if w.timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, w.timeout)
	}
	defer cancel()
	last, err := w.follow(limited, strict, look)
	if last != nil {
		if err := w.print(last, out); err != nil {
			return err
		}
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && last != nil:
		return &exit{code: ExitFailed, err: reason.Interrupted.Errorf("interrupted; this is the last report")}
	case limited.Err() != nil && ctx.Err() == nil:
		return &exit{code: ExitTimeout, err: reason.TimedOut.Errorf("cannot wait longer than %s: %w", w.timeout, err)}
	default:
		return err
	}
}

// follow returns the last report. It fails if that has problems left.
func (w *watch) follow(ctx context.Context, strict bool, look func(ctx context.Context) (*report.Report, error)) (*report.Report, error) {
	var last *report.Report
	v := w.view()
	defer v.close()
	for {
		r, err := look(ctx)
		switch {
		case err == nil:
			last = r
			v.show(r)
			if r.Failing(strict) == 0 && !isUnderWay(r.Restores) {
				return last, nil
			}
		case ctx.Err() != nil: // The look was interrupted.
		case last == nil:
			return nil, err
		default:
			v.failed(err)
		}
		if sleep(ctx, w.pause) != nil {
			return last, remaining(last, strict, err)
		}
	}
}

// remaining returns what is left when the time is up.
func remaining(last *report.Report, strict bool, err error) error {
	switch {
	case last == nil:
		return fmt.Errorf("there is no report yet: %w", err)
	case last.Failing(strict) > 0:
		return fmt.Errorf("%d problems and %d warnings are left", last.Summary.Problems, last.Summary.Warnings)
	default:
		return reason.RestoreRunning.Errorf("a Restore is still running")
	}
}

// isUnderWay reports whether a Restore is under way, so that more objects may come.
func isUnderWay(restores []report.Restore) bool {
	return slices.ContainsFunc(restores, func(r report.Restore) bool { return diagnosis.IsUnderWay(r.Phase) })
}

// view returns a live view on a terminal, and a plain one otherwise.
func (w *watch) view() view { //nolint:ireturn // It depends on where stderr goes.
	if _, ok := widthOf(w.Err); ok && !isDumb() {
		return newLiveView(w.Err)
	}

	return &plainView{out: w.Err, reported: map[reportedProblem]string{}}
}

// A reportedProblem identifies a problem in a view.
type reportedProblem struct {
	code   reason.Code
	object string
}

// reportable returns the problems of a report in order, and the text of each.
func reportable(r *report.Report) (order []reportedProblem, lines map[reportedProblem]string) {
	lines = map[reportedProblem]string{}
	waiting := map[xp.ID][]string{}
	for n := range report.All(r.Trees...) {
		if n.Hold != nil {
			waiting[n.ID()] = n.Hold.Waiting
		}
	}
	for _, p := range r.Problems {
		t := reportedProblem{code: p.Code, object: reason.Clean(p.Object.String())}
		if _, again := lines[t]; !again {
			order = append(order, t)
		}
		lines[t] = reason.Clean(problemText(p, waiting[p.Object.ID()]))
	}

	return order, lines
}

// problemText returns the reason of a problem. For a hold it is only what that waits for, or why it
// has failed, which is the part that changes.
func problemText(p report.Problem, waiting []string) string {
	switch {
	case !isHold(p.Code) || len(waiting) == 0:
		return p.Reason
	case len(waiting) == 1:
		return waiting[0]
	default:
		return fmt.Sprintf("%s (and %d more)", waiting[0], len(waiting)-1)
	}
}

func isHold(code reason.Code) bool { return code == reason.Held || code == reason.LeakedHold }

// progressText returns the progress in one line.
func progressText(r *report.Report) string {
	s := r.Summary

	return fmt.Sprintf("%d of %d composed resources adopted, %d held; %d problems, %d warnings", s.Adopted, s.Composed, s.Held, s.Problems, s.Warnings)
}
