package compat

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/ledger"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
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

// A Runner runs cells or pairs, and stores the good results. The others are run again the next
// time.
type Runner struct {
	Ledger *ledger.Ledger
	// Source identifies the files that the plugin is built from. A result of another Source is run
	// again if it is wanted; otherwise it shows with its commit.
	Source string
	// Commit is the checked out commit.
	Commit string
	Out    io.Writer
	// All has all cases.
	All []Case
	// Play runs one case.
	Play func(ctx context.Context, c Case, out io.Writer) (*drill.Recovery, error)
}

// Run runs the wanted cases that have no result with this plugin. It returns the results of all
// cases that have one of the same versions.
func (r *Runner) Run(ctx context.Context, wanted []Case) (map[Case]Result, error) {
	results := map[Case]Result{}
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
func (r *Runner) Missing(wanted []Case) ([]Case, error) {
	var missing []Case
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
func (r *Runner) last(c Case) (Result, bool, error) {
	last, of, ok, err := ledger.Last[Result](r.Ledger, c.String())
	_, versions, _ := strings.Cut(of, ", ")

	return last, ok && versions == c.versions(), err
}

// of identifies the plugin and the versions of a result.
func (r *Runner) of(c Case) string { return r.Source + ", " + c.versions() }

// run runs a case unless it has a result.
func (r *Runner) run(ctx context.Context, c Case) (Result, error) {
	return ledger.Entry(r.Ledger, c.String(), r.of(c), func() (Result, error) {
		recovery, err := r.Play(ctx, c, r.Out)
		result := Result{At: time.Now().UTC().Round(time.Second), Commit: r.Commit, Recovery: recovery}
		if err != nil {
			return result, err
		}

		return result, c.judge(recovery)
	})
}

func (r *Runner) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Out, "%s  %s\n", time.Now().UTC().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// Play loses a cluster of a case's versions and restores it into another. It builds missing programs.
func Play(ctx context.Context, c Case, out io.Writer) (*drill.Recovery, error) {
	if !c.isCell() {
		return PlayScenes(ctx, c, out)
	}
	options := c.options(c.To, "")

	var recovery *drill.Recovery
	err := drill.OnHost(ctx, out, func(host *stack.Host, say drill.Say) (err error) {
		loss := drill.Loss{
			Host: host, Cloud: api.NewClient(host.CloudURL()), Options: options, Count: instances, Say: say,
			Platform: drill.Platform{Crossplane: options.Crossplane, Namespace: "compat"},
		}

		recovery, err = loss.Recover(ctx)

		return err
	}, options)

	return recovery, err
}
