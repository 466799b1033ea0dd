package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/lab"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/ledger"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/meter"
)

const (
	// starts and polls are how many starts of the plugin and how many polls are measured.
	starts = 21
	polls  = 5
)

// A Runner takes the measurements that are missing.
type Runner struct {
	// Sizes of the measured backups.
	Sizes Sizes
	// Ledger stores the measurements.
	Ledger *ledger.Ledger
	// Of identifies the measured plugin.
	Of string
	// Plugin and Self are the paths of the plugin and of this program, which decodes a file if its
	// first argument is DecodeCommand.
	Plugin, Self string
	// Open starts the Lab, once a measurement needs it.
	Open func(ctx context.Context) (*lab.Lab, error)
	// Out gets the progress.
	Out io.Writer

	lab     *lab.Lab
	results Results
}

// DecodeCommand is the first argument that makes this program decode a file, for the comparison
// with inspect.
const DecodeCommand = "decode"

// Run measures the named stages, or all, and returns all results, including the stored ones of
// other stages.
func (r *Runner) Run(ctx context.Context, only []string) (*Results, error) {
	for _, name := range only {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("cannot measure %q: there are %s", name, strings.Join(Names(), ", "))
		}
	}
	wanted := func(s Stage) bool { return len(only) == 0 || slices.Contains(only, s.Name) }
	left := time.Duration(0)
	for _, s := range Stages() {
		for _, entry := range s.entries(r.Sizes) {
			if wanted(s) && !r.Ledger.Has(entry, r.Of) {
				left += s.each(r.Sizes)
			}
		}
	}
	r.say("the missing measurements take about %s", left.Round(time.Minute))
	for _, s := range Stages() {
		for i, entry := range s.entries(r.Sizes) {
			kept := r.Ledger.Has(entry, r.Of)
			if !kept && !wanted(s) {
				continue
			}
			if !kept {
				r.say("measuring %s, which takes about %s; about %s are left", entry, s.each(r.Sizes).Round(time.Second), left.Round(time.Minute))
				left -= s.each(r.Sizes)
			}
			if err := s.run(r, ctx, entry, i); err != nil {
				return nil, fmt.Errorf("cannot measure %s: %w", entry, err)
			}
		}
	}

	return &r.results, nil
}

// Close destroys the Lab, if there is one.
func (r *Runner) Close() error {
	if r.lab == nil {
		return nil
	}

	return r.lab.Close()
}

func (r *Runner) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Out, "%s  %s\n", time.Now().UTC().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// in returns the Lab, and starts it at the first call.
func (r *Runner) in(ctx context.Context) (*lab.Lab, error) {
	if r.lab != nil {
		return r.lab, nil
	}
	var err error
	r.lab, err = r.Open(ctx)

	return r.lab, err
}

// kept returns a stored measurement, or takes it in the Lab and stores it.
func kept[T any](ctx context.Context, r *Runner, entry string, measure func(l *lab.Lab) (T, error)) (T, error) {
	return ledger.Entry(r.Ledger, entry, r.Of, func() (none T, err error) {
		l, err := r.in(ctx)
		if err != nil {
			return none, err
		}

		return measure(l)
	})
}

func (r *Runner) start(ctx context.Context, entry string, _ int) (err error) {
	r.results.Start, err = ledger.Entry(r.Ledger, entry, r.Of, func() (*Start, error) {
		info, err := os.Stat(r.Plugin)
		if err != nil {
			return nil, fmt.Errorf("cannot look at the plugin: %w", err)
		}
		s := &Start{Bytes: info.Size()}
		for range starts {
			took, err := meter.Handshake(ctx, r.Plugin)
			if err != nil {
				return nil, err
			}
			s.Milliseconds = append(s.Milliseconds, float64(took)/float64(time.Millisecond))
		}

		return s, nil
	})

	return err
}

func (r *Runner) inspect(ctx context.Context, entry string, i int) error {
	pair, err := kept(ctx, r, entry, func(l *lab.Lab) (*Inspections, error) {
		path, err := l.Tarball(r.Sizes.Trees())
		if err != nil {
			return nil, err
		}
		pair := &Inspections{}
		err = alternately(i,
			func() (err error) { pair.Inspect, err = meter.Time(ctx, r.Plugin, "inspect", path); return err },
			func() (err error) { pair.Decode, err = meter.Time(ctx, r.Self, DecodeCommand, path); return err },
		)
		if err == nil {
			l.Say("inspect took %.2f s and %d MB, decoding %.2f s and %d MB", pair.Inspect.Seconds, pair.Inspect.Peak>>20, pair.Decode.Seconds, pair.Decode.Peak>>20)
		}

		return pair, err
	})
	if err != nil {
		return err
	}
	r.results.Inspections = append(r.results.Inspections, *pair)

	return nil
}

func (r *Runner) inspectTenth(ctx context.Context, entry string, _ int) error {
	run, err := kept(ctx, r, entry, func(l *lab.Lab) (*meter.Run, error) {
		path, err := l.Tarball(r.Sizes.Trees() / 10)
		if err != nil {
			return nil, err
		}

		return meter.Time(ctx, r.Plugin, "inspect", path)
	})
	if err != nil {
		return err
	}
	r.results.Tenth = append(r.results.Tenth, *run)

	return nil
}

// alternately swaps the order of its two functions for every other i.
func alternately(i int, one, other func() error) error {
	first, second := one, other
	if i%2 == 1 {
		first, second = other, one
	}
	if err := first(); err != nil {
		return err
	}

	return second()
}

func (r *Runner) restore(ctx context.Context, entry string, i int) error {
	pair, err := r.restores(ctx, entry, i, lab.How{})
	if err == nil {
		r.results.Restores = append(r.results.Restores, *pair)
	}

	return err
}

func (r *Runner) status(ctx context.Context, entry string, i int) error {
	pair, err := r.restores(ctx, entry, i, lab.How{Status: true})
	if err == nil {
		r.results.Statuses = append(r.results.Statuses, *pair)
	}

	return err
}

func (r *Runner) fast(ctx context.Context, entry string, i int) error {
	pair, err := r.restores(ctx, entry, i, lab.How{Fast: true})
	if err == nil {
		r.results.Fast = append(r.results.Fast, *pair)
	}

	return err
}

func (r *Runner) restores(ctx context.Context, entry string, i int, how lab.How) (*Restores, error) {
	return kept(ctx, r, entry, func(l *lab.Lab) (*Restores, error) {
		pair := &Restores{}
		with := how
		with.Plugin = true
		err := alternately(i,
			func() (err error) {
				pair.Plugin, err = l.Restore(ctx, r.Sizes.XRs, with)

				return err
			},
			func() (err error) {
				pair.Alone, err = l.Restore(ctx, r.Sizes.XRs, how)

				return err
			},
		)

		return pair, err
	})
}

func (r *Runner) release(ctx context.Context, entry string, _ int) error {
	one, err := kept(ctx, r, entry, func(l *lab.Lab) (*lab.Release, error) { return l.Release(ctx, r.Sizes.XRs) })
	if err == nil {
		r.results.Releases = append(r.results.Releases, *one)
	}

	return err
}

func (r *Runner) backup(ctx context.Context, entry string, i int) error {
	pair, err := kept(ctx, r, entry, func(l *lab.Lab) (*lab.Backups, error) { return l.Backups(ctx, r.Sizes.XRs, i%2 == 0) })
	if err == nil {
		r.results.Backups = append(r.results.Backups, *pair)
	}

	return err
}

func (r *Runner) peer(ctx context.Context, entry string, _ int) (err error) {
	r.results.Peer, err = kept(ctx, r, entry, func(l *lab.Lab) (*lab.Peer, error) { return l.Peer(ctx, r.Sizes.XRs) })

	return err
}

func (r *Runner) held(ctx context.Context, entry string, _ int) (err error) {
	r.results.Held, err = r.heldAt(ctx, entry, r.Sizes.Held)

	return err
}

func (r *Runner) base(ctx context.Context, entry string, _ int) (err error) {
	r.results.Base.Held, err = r.heldAt(ctx, entry, r.Sizes.XRs)

	return err
}

func (r *Runner) large(ctx context.Context, entry string, _ int) (err error) {
	r.results.Large.Held, err = r.heldAt(ctx, entry, r.Sizes.Large)

	return err
}

func (r *Runner) heldAt(ctx context.Context, entry string, xrs int) (*lab.Held, error) {
	return kept(ctx, r, entry, func(l *lab.Lab) (*lab.Held, error) { return l.Held(ctx, xrs, polls) })
}

func (r *Runner) baseGrown(ctx context.Context, entry string, _ int) (err error) {
	r.results.Base.Grown, err = r.grownAt(ctx, entry, r.Sizes.XRs)

	return err
}

func (r *Runner) largeGrown(ctx context.Context, entry string, _ int) (err error) {
	r.results.Large.Grown, err = r.grownAt(ctx, entry, r.Sizes.Large)

	return err
}

func (r *Runner) grownAt(ctx context.Context, entry string, xrs int) (*lab.Grown, error) {
	return kept(ctx, r, entry, func(l *lab.Lab) (*lab.Grown, error) { return l.Grown(ctx, xrs) })
}

func (r *Runner) alone(ctx context.Context, entry string, _ int) (err error) {
	r.results.LargeAlone, err = kept(ctx, r, entry, func(l *lab.Lab) (*lab.Restore, error) { return l.Restore(ctx, r.Sizes.Large, lab.How{}) })

	return err
}
