package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/meter"
)

// A Standby is the measurement of a standby that is refreshed once and promoted.
type Standby struct {
	// First is the restore that fills the standby, and Refresh that of the same backup after it.
	First   *Restore `json:"first"`
	Refresh *Restore `json:"refresh"`
	// Promotion is the time in seconds from the start of the command release to its end, when all is
	// adopted. Crossplane runs.
	Promotion float64 `json:"promotion"`
	// Restart and Applying are as in a Release.
	Restart  float64 `json:"restart"`
	Applying float64 `json:"applying"`
	// Unpause is the time in seconds in which all objects were unpaused without the plugin.
	Unpause float64 `json:"unpause"`
	// Plugin counts the requests of the promotion.
	Plugin map[string]int `json:"plugin"`
	// Created counts the cloud resources that were created though they existed already.
	Created int `json:"created"`
}

// Standby restores that many trees as a standby, restores the same backup again, and promotes the
// standby. Then it restarts Crossplane. At last it pauses all, and unpauses all without the plugin.
func (l *Lab) Standby(ctx context.Context, trees int) (*Standby, error) {
	if err := l.count(ctx, trees); err != nil {
		return nil, err
	}
	s := &Standby{}
	var name string
	for _, each := range []struct {
		into **Restore
		how  How
	}{{&s.First, How{Plugin: true, Live: true, Standby: true}}, {&s.Refresh, How{Plugin: true, Live: true, Standby: true, Again: true}}} {
		r, run, err := l.restore(ctx, trees, each.how)
		if err != nil {
			return nil, err
		}
		_, _, err = run.record.Until(ctx, 2*l.timeout(trees), meter.Over)
		run.record.End()
		if err != nil {
			return nil, err
		}
		*each.into, name = r, run.name
	}

	_, place, err := l.cluster.RequestsSince(ctx, 0)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	_, stderr, code, err := l.cluster.Plugin(ctx, "", "release", "--restore", name, "--timeout", l.timeout(trees).String())
	if err != nil {
		return nil, err
	}
	if code != 0 {
		return nil, fmt.Errorf("cannot promote: the command ended with %d: %s", code, stderr)
	}
	s.Promotion = time.Since(began).Seconds()
	requests, _, err := l.cluster.RequestsSince(ctx, place)
	if err != nil {
		return nil, err
	}
	s.Plugin = meter.Kinds(meter.Between(requests, meter.Plugin, began, time.Now()))
	l.Say("%d XRs were promoted in %.1f s, with %v", trees, s.Promotion, s.Plugin)
	if s.Created, err = l.created(ctx); err != nil {
		return nil, err
	}
	if s.Restart, s.Applying, err = l.restart(ctx, trees); err != nil {
		return nil, err
	}
	l.live = trees
	s.Unpause, err = l.unpause(ctx, trees)

	return s, err
}
