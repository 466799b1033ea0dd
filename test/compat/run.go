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

// instances is how many there are in each cluster: more than one, so that a mix-up of two would
// show.
const instances = 3

// A Result is the result of a cell or a pair.
type Result struct {
	// At is the time of the run.
	At time.Time `json:"at"`
	// Commit is the checked out commit.
	Commit string `json:"commit,omitempty"`
	// Recovery is nil if the run failed before it.
	Recovery *drill.Recovery `json:"recovery,omitempty"`
	// Failed is the damage or failure; "" if all is as before the loss.
	Failed string `json:"-"`
}

// A Case is a Cell or a Pair.
type Case interface {
	comparable
	fmt.Stringer

	// versions returns the full versions.
	versions() string
	// judge returns what is wrong in a recovery; nil if nothing is.
	judge(r *drill.Recovery) error
}

// A Runner runs cells or pairs, and stores the good results. The others are run again the next
// time.
type Runner[C Case] struct {
	Ledger *ledger.Ledger
	// Source identifies the files that the plugin is built from. A result of another Source is run
	// again if it is wanted; otherwise it shows with its commit.
	Source string
	// Commit is the checked out commit.
	Commit string
	Out    io.Writer
	// All has all cases.
	All []C
	// Play runs one case.
	Play func(ctx context.Context, c C, out io.Writer) (*drill.Recovery, error)
}

// Run runs the wanted cases that have no result with this plugin. It returns the results of all
// cases that have one of the same versions.
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
			// An older plugin's result must not show for a case that this plugin fails.
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

// Missing returns the wanted cases that have no result of the same versions, with any plugin.
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

// last returns the last stored result of the same versions.
func (r *Runner[C]) last(c C) (Result, bool, error) {
	last, of, ok, err := ledger.Last[Result](r.Ledger, c.String())
	_, versions, _ := strings.Cut(of, ", ")

	return last, ok && versions == c.versions(), err
}

// of identifies the plugin and the versions of a result.
func (r *Runner[C]) of(c C) string { return r.Source + ", " + c.versions() }

// run runs a case unless it has a result.
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

// judge returns what is wrong in a recovery; nil if nothing is.
func judge(r *drill.Recovery) error {
	if r.Sound() {
		return nil
	}
	wrong := []string{fmt.Sprintf("the restore is %s; %d creates, %d deletes, %d duplicates, %d orphans, %d of %d adopted, %d held",
		r.Phase, r.Creates, r.Deletes, r.Duplicates, r.Orphans, r.Adopted, r.Total, r.Holds)}

	return errors.New(strings.Join(append(wrong, r.Wrong...), "; "))
}

// Play loses a cluster of the cell's versions and restores it into another. It builds missing
// programs.
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
