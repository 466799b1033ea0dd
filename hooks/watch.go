package hooks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// watchPause is the time between two looks.
const watchPause = 2 * time.Second

// A watch looks again and again until nothing is wrong.
type watch struct {
	*options

	on      bool
	timeout time.Duration
	pause   time.Duration
}

// addTo gives a command the flags --watch and --timeout.
func (w *watch) addTo(c *cobra.Command) {
	w.pause = watchPause
	c.Flags().BoolVarP(&w.on, "watch", "w", false, "look again until no problem is left and no restore is under way, and show on stderr how it goes on")
	c.Flags().DurationVar(&w.timeout, "timeout", 0, "with --watch, for how long; 0 is without end")
}

// check says whether the flags fit together.
func (w *watch) check() error {
	switch {
	case w.timeout < 0:
		return &exit{code: ExitUsage, err: fmt.Errorf("cannot watch for %s", w.timeout)}
	case w.timeout > 0 && !w.on:
		return &exit{code: ExitUsage, err: errors.New("cannot time out without watching: --timeout goes with --watch")}
	default:
		return nil
	}
}

// A view shows a person how it goes on.
type view interface {
	show(r *report.Report)
	// failed shows that looking has failed, and is tried again.
	failed(err error)
	close()
}

// run looks until nothing is wrong, the time is over, or the user has seen enough, and prints what
// it saw last. If the first look fails so does run: waiting would not mend a wrong kubeconfig.
// Later the API server may be away for a while.
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
		return &exit{code: ExitFailed, err: errors.New("interrupted; this is how it was when it was last looked at")}
	case limited.Err() != nil && ctx.Err() == nil:
		return &exit{code: ExitTimeout, err: fmt.Errorf("cannot wait longer than %s: %w", w.timeout, err)}
	default:
		return err
	}
}

// follow returns what it saw last. It fails if that is not well.
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
		case ctx.Err() != nil: // It was not looked to the end.
		case last == nil:
			return nil, err
		default:
			v.failed(err)
		}
		select {
		case <-ctx.Done():
			return last, remaining(last, strict, err)
		case <-time.After(w.pause):
		}
	}
}

// remaining says what is left when there is no time left.
func remaining(last *report.Report, strict bool, err error) error {
	switch {
	case last == nil:
		return fmt.Errorf("nothing was seen yet: %w", err)
	case last.Failing(strict) > 0:
		return fmt.Errorf("%d problems and %d warnings are left", last.Summary.Problems, last.Summary.Warnings)
	default:
		return errors.New("a restore is still under way")
	}
}

// isUnderWay reports whether Velero still works on any of the Restores, so that there may be more
// to come.
func isUnderWay(restores []report.Restore) bool {
	for _, r := range restores {
		if diagnosis.IsUnderWay(r.Phase) {
			return true
		}
	}

	return false
}

// view returns a live one on a terminal, and else one that says what has changed, line by line.
func (w *watch) view() view { //nolint:ireturn // It depends on where stderr goes.
	if _, ok := widthOf(w.Err); ok && !isDumb() {
		return newLiveView(w.Err)
	}

	return &plainView{out: w.Err, told: map[reportedProblem]string{}}
}

// A reportedProblem is a problem that was told of.
type reportedProblem struct {
	code   report.Code
	object string
}

// reportable returns the problems of a report by what they are, as a person reads them in one line.
func reportable(r *report.Report) (order []reportedProblem, lines map[reportedProblem]string) {
	lines = map[reportedProblem]string{}
	for _, p := range r.Problems {
		t := reportedProblem{code: p.Code, object: printer.Clean(p.Object.String())}
		if _, again := lines[t]; !again {
			order = append(order, t)
		}
		lines[t] = printer.Clean(problemText(p))
	}

	return order, lines
}

// problemText is what is wrong, of a hold only what it waits for: that changes, and is what a
// person watches.
func problemText(p report.Problem) string {
	if p.Code == report.HeldBack || p.Code == report.LeakedHold {
		if at := strings.Index(p.Reason, "waiting for "); at >= 0 {
			return p.Reason[at:]
		}
	}

	return p.Reason
}

// progressText says in one line how far it is.
func progressText(r *report.Report) string {
	s := r.Summary

	return fmt.Sprintf("%d of %d composed resources adopted, %d held; %d problems, %d warnings", s.Adopted, s.Composed, s.Held, s.Problems, s.Warnings)
}
