// Command demo shows how a restore affects Crossplane's composite resources, with Velero alone and
// with the plugin, on the real stack: it loses a cluster and restores its backup into another one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cmd/start"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func main() {
	crossplane := flag.String("crossplane", "v2", "Crossplane to show it with: v2 or v1.20.")
	native := flag.Bool("native", false, "On v1.20, compose with native patch-and-transform rather than with a function.")
	count := flag.Int("count", 10, "How many composite resources to make.")
	velero := flag.String("velero", "v1.18", "Velero to show it with: v1.18, v1.17 or v1.16.")
	flag.Parse()

	program, served := map[string]string{"v1.18": stack.Velero, "v1.17": "velero-v1.17", "v1.16": "velero-v1.16"}[*velero]
	version, ok := map[string]stack.Version{"v2": stack.V2, "v1.20": stack.V1}[*crossplane]
	if !ok || !served || *count < 1 || *native && version != stack.V1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "cannot run the demo so: --crossplane is v2 or v1.20, --native is for v1.20, --velero is v1.18, v1.17 or v1.16, "+
			"and --count is at least 1")
		os.Exit(2)
	}
	start.Main(func(ctx context.Context) error {
		return run(ctx, os.Stdout, stack.Options{Crossplane: version, Velero: program}, *native, *count)
	})
}

// A round is one loss and restore of everything.
type round struct {
	drill.Loss

	title   string
	outcome *drill.Recovery
}

// run runs both rounds and prints their table. It fails if the plugin's round lost or duplicated
// anything.
func run(ctx context.Context, out io.Writer, options stack.Options, native bool, count int) error {
	with := options
	with.Plugin = true

	return drill.OnHost(ctx, out, func(host *stack.Host, say drill.Say) error {
		rounds := []*round{
			{title: "Velero alone", Loss: drill.Loss{Options: options, Platform: drill.Platform{Namespace: "alone"}}},
			{title: "with the plugin", Loss: drill.Loss{Options: with, Platform: drill.Platform{Namespace: "safe"}}},
		}
		for _, r := range rounds {
			_, _ = fmt.Fprintf(out, "\n== %s ==\n", r.title)
			r.Host, r.Cloud, r.Count, r.Say, r.Follow = host, api.NewClient(host.CloudURL()), count, say, r.follow
			r.Platform.Crossplane, r.Platform.Native = options.Crossplane, native
			var err error
			if r.outcome, err = r.Recover(ctx); err != nil {
				return fmt.Errorf("cannot finish the round %q: %w", r.title, err)
			}
		}
		table(out, rounds)
		if safe := rounds[1].outcome; !safe.Sound() {
			return errors.New(strings.Join(append([]string{"a promise is broken: see the plugin's column"}, safe.Wrong...), "; "))
		}
		say("The plugin kept its promises: nothing was created, deleted, duplicated or orphaned, and nothing is held.")

		return nil
	}, with)
}

// follow prints what changes during a restore, until the returned function is called.
func (r *round) follow(ctx context.Context, c *stack.Cluster) func() {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		last := ""
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if now := r.state(ctx, c); now != "" && now != last {
				r.Say("  %s", now)
				last = now
			}
		}
	})

	return func() {
		cancel()
		wg.Wait()
	}
}

// state returns the state of the round; "" while there is none yet.
func (r *round) state(ctx context.Context, c *stack.Cluster) string {
	xrs, err := r.Platform.Composites(ctx, c)
	if err != nil {
		return ""
	}
	mrs, err := r.Platform.Managed(ctx, c)
	if err != nil {
		return ""
	}
	held, ready := 0, 0
	for _, u := range xrs {
		if drill.Held(&u) {
			held++
		}
		if stack.HasCondition(&u, "Ready", "True") == nil {
			ready++
		}
	}

	return fmt.Sprintf("%d composite resources (%d held, %d Ready), %d managed resources", len(xrs), held, ready, len(mrs))
}

func table(out io.Writer, rounds []*round) {
	rows := []struct {
		label string
		cell  func(o *drill.Recovery) any
	}{
		{"Velero's phase", func(o *drill.Recovery) any { return o.Phase }},
		{"external creates", func(o *drill.Recovery) any { return o.Creates }},
		{"external deletes", func(o *drill.Recovery) any { return o.Deletes }},
		{"duplicates", func(o *drill.Recovery) any { return o.Duplicates }},
		{"orphans", func(o *drill.Recovery) any { return o.Orphans }},
		{"adopted / total", func(o *drill.Recovery) any { return fmt.Sprintf("%d / %d", o.Adopted, o.Total) }},
		{"holds left", func(o *drill.Recovery) any { return o.Holds }},
		{"seconds to all Ready", func(o *drill.Recovery) any { return fmt.Sprintf("%.1f", o.Seconds) }},
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w)
	for _, r := range rounds {
		_, _ = fmt.Fprint(w, "\t", r.title)
	}
	for _, row := range rows {
		_, _ = fmt.Fprint(w, "\n", row.label)
		for _, r := range rounds {
			_, _ = fmt.Fprint(w, "\t", row.cell(r.outcome))
		}
	}
	_, _ = fmt.Fprint(w, "\n\n")
	_ = w.Flush() // A failure could only be printed to the same output.
}
