package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/meter"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A Release is the measurement of a release of XRs.
type Release struct {
	// Restore is the restore of the same XRs, if it was measured together with this.
	Restore *Restore `json:"restore,omitempty"`
	// Seconds from the end of the last item, or from the start of Crossplane if that is later,
	// until the last XR is released.
	Seconds float64 `json:"seconds"`
	// Restart is the time in seconds from Crossplane's second start until it has applied all
	// composed resources.
	Restart float64 `json:"restart"`
	// Plugin counts the plugin's requests during the release.
	Plugin map[string]int `json:"plugin"`
	// Created counts the cloud resources that were created though they existed already.
	Created int `json:"created"`
	// PollPeak is the largest peak memory of a process of a poll after the items phase, in bytes.
	PollPeak int64 `json:"pollPeak"`
}

// Release restores that many trees with the plugin while Crossplane runs, and measures how long the
// release takes. Then it restarts Crossplane.
func (l *Lab) Release(ctx context.Context, trees int) (*Release, error) {
	if err := l.count(ctx, trees); err != nil {
		return nil, err
	}
	r, run, err := l.restore(ctx, trees, How{Plugin: true, Live: true})
	if err != nil {
		return nil, err
	}
	defer run.record.End()

	return l.release(ctx, trees, r, run, run.restored)
}

// release waits until all held objects are released. since is the time from which that was
// possible.
func (l *Lab) release(ctx context.Context, trees int, r *Restore, run *running, since time.Time) (*Release, error) {
	if _, _, err := run.record.Until(ctx, 2*l.timeout(trees), meter.Over); err != nil {
		return nil, err
	}
	requests, err := l.cluster.Requests(ctx)
	if err != nil {
		return nil, err
	}
	last := meter.LastRelease(requests)
	if last.IsZero() {
		return nil, errors.New("cannot find when the last XR was released: the plugin has taken off no hold")
	}
	out := &Release{
		Restore: r, Seconds: last.Sub(since).Seconds(), Plugin: meter.Kinds(meter.Between(requests, meter.Plugin, time.Time{}, last)),
		PollPeak: meter.Peak(meter.In(l.watch.Processes(), run.restored, time.Now())),
	}
	l.Say("the last of %d XRs was released after %.1f s", trees, out.Seconds)
	if out.Created, err = l.created(ctx); err != nil {
		return nil, err
	}
	if out.Restart, err = l.restart(ctx, trees); err != nil {
		return nil, err
	}
	l.live = trees

	return out, nil
}

// restart restarts Crossplane, and returns the seconds until it has applied all composed resources
// of the trees. It applies each once in each reconcile of an XR.
func (l *Lab) restart(ctx context.Context, trees int) (float64, error) {
	_, place, err := l.cluster.RequestsSince(ctx, 0)
	if err != nil {
		return 0, err
	}
	if err := l.cluster.Stop(stack.Crossplane); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := l.cluster.Start(ctx, stack.Crossplane); err != nil {
		return 0, err
	}
	var requests []stack.Request
	last := began
	err = l.wait(ctx, l.timeout(trees), "Crossplane to apply all that is composed", func(ctx context.Context) error {
		more, next, err := l.cluster.RequestsSince(ctx, place)
		if err != nil {
			return err
		}
		requests, place = append(requests, more...), next
		written := meter.FirstWrites(requests, meter.Crossplane, began, l.managedResources()...)
		if want := trees * l.composed; len(written) < want {
			return fmt.Errorf("it has applied %d of %d", len(written), want)
		}
		last = slices.MaxFunc(slices.Collect(maps.Values(written)), time.Time.Compare)

		return nil
	})
	l.Say("Crossplane has reconciled %d XRs %.1f s after a restart", trees, last.Sub(began).Seconds())

	return last.Sub(began).Seconds(), err
}

// wait waits for a condition that is expensive to check.
func (l *Lab) wait(ctx context.Context, timeout time.Duration, what string, condition func(context.Context) error) error {
	var next time.Time
	var last error

	return l.cluster.Wait(ctx, timeout, what, func(ctx context.Context) error {
		if time.Now().After(next) {
			last = condition(ctx)
			next = time.Now().Add(time.Second)
		}

		return last
	})
}
