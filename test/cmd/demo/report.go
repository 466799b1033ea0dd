package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// follow prints what changes during a restore, until the returned function is called.
func (d *demo) follow(ctx context.Context, r *round, c *stack.Cluster) func() {
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
			if now := d.state(ctx, r, c); now != "" && now != last {
				d.say("  %s", now)
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
func (d *demo) state(ctx context.Context, r *round, c *stack.Cluster) string {
	xrs, err := r.platform.Composites(ctx, c)
	if err != nil {
		return ""
	}
	mrs, err := r.platform.Managed(ctx, c)
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

func (d *demo) table(rounds []*round) {
	_, _ = fmt.Fprintln(d.out)
	w := tabwriter.NewWriter(d.out, 0, 0, 3, ' ', 0)
	row := func(label string, cell func(r *round) string) {
		_, _ = fmt.Fprint(w, label)
		for _, r := range rounds {
			_, _ = fmt.Fprint(w, "\t", cell(r))
		}
		_, _ = fmt.Fprintln(w)
	}
	number := func(value func(o *drill.Recovery) int) func(r *round) string {
		return func(r *round) string { return strconv.Itoa(value(r.outcome)) }
	}
	row("", func(r *round) string { return r.title })
	row("Velero's phase", func(r *round) string { return r.outcome.Phase })
	row("external creates", number(func(o *drill.Recovery) int { return o.Creates }))
	row("external deletes", number(func(o *drill.Recovery) int { return o.Deletes }))
	row("duplicates", number(func(o *drill.Recovery) int { return o.Duplicates }))
	row("orphans", number(func(o *drill.Recovery) int { return o.Orphans }))
	row("adopted / total", func(r *round) string { return fmt.Sprintf("%d / %d", r.outcome.Adopted, r.outcome.Total) })
	row("holds left", number(func(o *drill.Recovery) int { return o.Holds }))
	row("seconds to all Ready", func(r *round) string { return fmt.Sprintf("%.1f", r.outcome.Seconds) })
	_ = w.Flush() // A failure could only be printed to the same output.
	_, _ = fmt.Fprintln(d.out)
}
