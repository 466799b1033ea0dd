package lab

import (
	"context"
	"time"
)

// A Growth is what was measured of everything at one size, in one cluster.
type Growth struct {
	Held    *Held    `json:"held"`
	Release *Release `json:"release"`
	Backup  *Backup  `json:"backup"`
}

// Grow restores that many trees with the plugin, measures polls, then starts Crossplane, measures how long the release takes, and backs up what is adopted.
func (l *Lab) Grow(ctx context.Context, trees, polls int) (*Growth, error) {
	if err := l.count(ctx, trees); err != nil {
		return nil, err
	}
	r, run, err := l.restore(ctx, trees, How{Plugin: true})
	if err != nil {
		return nil, err
	}
	defer run.record.End()
	g := &Growth{Held: &Held{Restore: r}}
	if g.Held.Polls, err = l.polls(ctx, run, polls); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := l.start(ctx); err != nil {
		return nil, err
	}
	if g.Release, err = l.release(ctx, trees, r, run, began); err != nil {
		return nil, err
	}
	if err := l.adopted(ctx, trees); err != nil {
		return nil, err
	}
	if err := l.cluster.UsePlugin(ctx, true); err != nil {
		return nil, err
	}
	g.Backup, _, err = l.backUp(ctx, trees, true)

	return g, err
}

// Peak is the most memory that a process of the plugin has had, in bytes.
func (g *Growth) Peak() float64 {
	return max(float64(g.Held.Restore.Peak), g.PollPeak(), float64(g.Backup.Peak))
}

// PollPeak is the most memory that a process of the plugin has had while it was polled, in bytes.
func (g *Growth) PollPeak() float64 {
	most := float64(g.Release.PollPeak)
	for _, p := range g.Held.Polls {
		most = max(most, float64(p.Peak))
	}

	return most
}
