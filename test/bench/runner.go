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

// Names returns the names of all stages.
func Names() []string {
	var names []string
	for _, s := range (&Runner{}).stages() {
		names = append(names, s.name)
	}

	return slices.Compact(names)
}

// Run measures the named stages, or all, and returns all results, including the stored ones of
// other stages.
func (r *Runner) Run(ctx context.Context, only []string) (*Results, error) {
	for _, name := range only {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("cannot measure %q: there are %s", name, strings.Join(Names(), ", "))
		}
	}
	for _, s := range r.stages() {
		for i, entry := range s.entries {
			if !r.Ledger.Has(entry, r.Of) {
				if len(only) > 0 && !slices.Contains(only, s.name) {
					continue
				}
				_, _ = fmt.Fprintf(r.Out, "%s  measuring %s\n", time.Now().UTC().Format(time.TimeOnly), entry)
			}
			if err := s.run(ctx, entry, i); err != nil {
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

// A stage is a part of the measurements that can be chosen.
type stage struct {
	name    string
	entries []string // The names of its ledger entries.
	run     func(ctx context.Context, entry string, i int) error
}

// stored returns a stage whose i-th measurement is taken once, and then read from the ledger.
func stored[T any](r *Runner, name string, entries []string, pass func(T), measure func(ctx context.Context, i int) (T, error)) stage {
	return stage{name: name, entries: entries, run: func(ctx context.Context, entry string, i int) error {
		result, err := ledger.Entry(r.Ledger, entry, r.Of, func() (T, error) { return measure(ctx, i) })
		if err == nil {
			pass(result)
		}

		return err
	}}
}

// measured returns a stage whose measurements are taken in the Lab, which the first one starts.
func measured[T any](r *Runner, name string, entries []string, pass func(T), measure func(ctx context.Context, l *lab.Lab, i int) (T, error)) stage {
	return stored(r, name, entries, pass, func(ctx context.Context, i int) (none T, err error) {
		if r.lab == nil {
			if r.lab, err = r.Open(ctx); err != nil {
				return none, err
			}
		}

		return measure(ctx, r.lab, i)
	})
}

func into[T any](to *T) func(T) { return func(result T) { *to = result } }

func onto[T any](to *[]T) func(T) { return func(result T) { *to = append(*to, result) } }

// stages returns all stages in the order of their measurement.
func (r *Runner) stages() []stage {
	s, out := r.Sizes, &r.results
	restores := func(name string, to *[]Restores, how lab.How) stage {
		return measured(r, name, numbered(name, s.Pairs), onto(to), func(ctx context.Context, l *lab.Lab, i int) (pair Restores, err error) {
			with := how
			with.Plugin = true
			err = alternately(i,
				func() (err error) { pair.Plugin, err = l.Restore(ctx, s.XRs, with); return err },
				func() (err error) { pair.Alone, err = l.Restore(ctx, s.XRs, how); return err },
			)

			return pair, err
		})
	}
	held := func(name string, xrs int, to **lab.Held) stage {
		return measured(r, name, of("held", xrs), into(to), func(ctx context.Context, l *lab.Lab, _ int) (*lab.Held, error) {
			return l.Held(ctx, xrs, polls)
		})
	}
	grown := func(name string, xrs int, to **lab.Grown) stage {
		return measured(r, name, of("grown", xrs), into(to), func(ctx context.Context, l *lab.Lab, _ int) (*lab.Grown, error) {
			return l.Grown(ctx, xrs)
		})
	}

	return []stage{
		stored(r, "start", []string{"start"}, into(&out.Start), r.start),
		measured(r, "inspect", numbered(fmt.Sprintf("inspect-%d", s.Objects), s.Pairs), onto(&out.Inspections), r.inspect),
		measured(r, "inspect", numbered(fmt.Sprintf("inspect-%d", s.Objects/10), s.Pairs), onto(&out.Tenth),
			func(ctx context.Context, l *lab.Lab, _ int) (*meter.Run, error) {
				path, err := l.Tarball(s.Trees() / 10)
				if err != nil {
					return nil, err
				}

				return meter.Time(ctx, r.Plugin, "inspect", path)
			}),
		restores("restore", &out.Restores, lab.How{}),
		restores("status", &out.Statuses, lab.How{Status: true}),
		restores("fast", &out.Fast, lab.How{Fast: true}),
		measured(r, "release", numbered("release", s.Pairs), onto(&out.Releases),
			func(ctx context.Context, l *lab.Lab, _ int) (*lab.Release, error) { return l.Release(ctx, s.XRs) }),
		measured(r, "backup", numbered("backup", s.Pairs), onto(&out.Backups),
			func(ctx context.Context, l *lab.Lab, i int) (*lab.Backups, error) {
				return l.Backups(ctx, s.XRs, i%2 == 0)
			}),
		measured(r, "peer", []string{"peer"}, into(&out.Peer),
			func(ctx context.Context, l *lab.Lab, _ int) (*lab.Peer, error) { return l.Peer(ctx, s.XRs) }),
		held("held", s.Held, &out.Held),
		held("growth", s.XRs, &out.Base.Held), grown("growth", s.XRs, &out.Base.Grown),
		held("large", s.Large, &out.Large.Held), grown("large", s.Large, &out.Large.Grown),
		measured(r, "alone", of("alone", s.Large), into(&out.LargeAlone),
			func(ctx context.Context, l *lab.Lab, _ int) (*lab.Restore, error) {
				return l.Restore(ctx, s.Large, lab.How{})
			}),
	}
}

// numbered returns n names.
func numbered(name string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%d", name, i+1))
	}

	return names
}

// of returns the one name of a measurement with that many XRs.
func of(name string, xrs int) []string { return []string{fmt.Sprintf("%s-%d", name, xrs)} }

func (r *Runner) start(ctx context.Context, _ int) (*Start, error) {
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
}

func (r *Runner) inspect(ctx context.Context, l *lab.Lab, i int) (pair Inspections, err error) {
	path, err := l.Tarball(r.Sizes.Trees())
	if err != nil {
		return pair, err
	}
	err = alternately(i,
		func() (err error) { pair.Inspect, err = meter.Time(ctx, r.Plugin, "inspect", path); return err },
		func() (err error) { pair.Decode, err = meter.Time(ctx, r.Self, DecodeCommand, path); return err },
	)

	return pair, err
}

// alternately swaps the order of its two functions for every other i.
func alternately(i int, one, other func() error) error {
	if i%2 == 1 {
		one, other = other, one
	}
	if err := one(); err != nil {
		return err
	}

	return other()
}
