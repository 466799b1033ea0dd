package compat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/ledger"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// instances is how many there are in each cluster: more than one, so that one could be mistaken for
// another.
const instances = 3

// A Result is what came of a cell or a pair.
type Result struct {
	// At is when.
	At time.Time `json:"at"`
	// Commit is the one that was checked out.
	Commit string `json:"commit,omitempty"`
	// Recovery is nil if it did not come so far.
	Recovery *drill.Recovery `json:"recovery,omitempty"`
	// Failed is what is wrong; "" if all is as if nothing had happened.
	Failed string `json:"-"`
}

// A Case is what has a result: a Cell or a Pair.
type Case interface {
	comparable
	fmt.Stringer

	// versions are the exact ones.
	versions() string
	// judge says what is wrong with what came of it; nil if nothing is.
	judge(r *drill.Recovery) error
}

// A Runner runs cells or pairs, and keeps the results of those that are as they should be. Others
// are run again the next time.
type Runner[C Case] struct {
	Ledger *ledger.Ledger
	// Source is what the plugin is built from. What was run with another is run again if it is
	// wanted, and else shows with its commit.
	Source string
	// Commit is the one that is checked out.
	Commit string
	Out    io.Writer
	// All are those that there are.
	All []C
	// Play runs one.
	Play func(ctx context.Context, c C, out io.Writer) (*drill.Recovery, error)
}

// Run runs the wanted ones of which there is no result with this plugin, and returns the results of
// all that have one of the same versions.
func (r *Runner[C]) Run(ctx context.Context, wanted []C) (map[C]Result, error) {
	results := map[C]Result{}
	for i, c := range wanted {
		if !r.Ledger.Has(c.String(), r.of(c)) {
			r.say("%d of %d: %s", i+1, len(wanted), c)
		}
		result, err := r.run(ctx, c)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			r.say("%s: %v", c, err)
			result.Failed = err.Error()
			// What an older plugin came to must not show for what this one fails at.
			if err := r.Ledger.Drop(c.String()); err != nil {
				return nil, err
			}
		}
		results[c] = result
	}
	for _, c := range r.All {
		if _, ok := results[c]; ok {
			continue
		}
		last, ok, err := r.last(c)
		if err != nil {
			return nil, err
		}
		if ok {
			results[c] = last
		}
	}

	return results, nil
}

// Missing are those of the wanted ones of which there is no result of the same versions, with
// whatever plugin.
func (r *Runner[C]) Missing(wanted []C) ([]C, error) {
	var missing []C
	for _, c := range wanted {
		_, ok, err := r.last(c)
		if err != nil {
			return nil, err
		}
		if !ok {
			missing = append(missing, c)
		}
	}

	return missing, nil
}

// last returns the result of the same versions that was kept last.
func (r *Runner[C]) last(c C) (Result, bool, error) {
	last, of, ok, err := ledger.Last[Result](r.Ledger, c.String())
	_, versions, _ := strings.Cut(of, ", ")

	return last, ok && versions == c.versions(), err
}

// of is what a result is a result of.
func (r *Runner[C]) of(c C) string { return r.Source + ", " + c.versions() }

// run runs one, unless there is a result of it.
func (r *Runner[C]) run(ctx context.Context, c C) (Result, error) {
	return ledger.Entry(r.Ledger, c.String(), r.of(c), func() (Result, error) {
		recovery, err := r.Play(ctx, c, r.Out)
		result := Result{At: time.Now().UTC().Round(time.Second), Commit: r.Commit, Recovery: recovery}
		if err != nil {
			return result, err
		}

		return result, c.judge(recovery)
	})
}

func (r *Runner[C]) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Out, "%s  %s\n", time.Now().UTC().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// judge says what is wrong; nil if nothing is.
func judge(r *drill.Recovery) error {
	if r.Sound() {
		return nil
	}
	wrong := []string{fmt.Sprintf("the restore is %s; %d creates, %d deletes, %d duplicates, %d orphans, %d of %d adopted, %d held",
		r.Phase, r.Creates, r.Deletes, r.Duplicates, r.Orphans, r.Adopted, r.Total, r.Holds)}

	return errors.New(strings.Join(append(wrong, r.Wrong...), "; "))
}

// Play loses a cluster of the cell's versions and restores into another. Programs that are missing
// are built.
func Play(ctx context.Context, c Cell, out io.Writer) (recovery *drill.Recovery, err error) {
	options := c.Options()
	set, err := build.Ensure(ctx, out, stack.Programs(options)...)
	if err != nil {
		return nil, err
	}
	host, err := stack.NewHost(ctx, set, "", io.Discard)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	began := time.Now()
	loss := drill.Loss{
		Host: host, Cloud: api.NewClient(host.CloudURL()), Options: options, Count: instances,
		Platform: drill.Platform{Crossplane: options.Crossplane, Namespace: "compat"},
		Say: func(format string, args ...any) {
			_, _ = fmt.Fprintf(out, "%8s  %s\n", time.Since(began).Round(time.Second), fmt.Sprintf(format, args...))
		},
	}

	return loss.Recover(ctx)
}
