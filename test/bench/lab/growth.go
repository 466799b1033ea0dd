package lab

import (
	"context"
	"time"
)

// A Held is the measurement of a restore whose XRs stay held.
type Held struct {
	Restore *Restore `json:"restore"`
	Polls   []Poll   `json:"polls"`
}

// Held restores that many trees with the plugin and without Crossplane, and measures polls.
func (l *Lab) Held(ctx context.Context, trees, polls int) (*Held, error) {
	if err := l.count(ctx, trees); err != nil {
		return nil, err
	}
	r, run, err := l.restore(ctx, trees, How{Plugin: true})
	if err != nil {
		return nil, err
	}
	h := &Held{Restore: r}
	if h.Polls, err = l.polls(ctx, trees, run, polls); err != nil {
		run.record.End()

		return nil, err
	}
	l.held, l.heldTrees = run, trees

	return h, nil
}

// Peak returns the peak memory of the plugin's processes, in bytes.
func (h *Held) Peak() int64 { return max(h.Restore.Peak, h.PollPeak()) }

// PollPeak returns the peak memory of the polls' processes, in bytes.
func (h *Held) PollPeak() int64 {
	var most int64
	for _, p := range h.Polls {
		most = max(most, p.Peak)
	}

	return most
}

// A Grown is the measurement of held XRs after the start of Crossplane.
type Grown struct {
	Release *Release `json:"release"`
	Backup  *Backup  `json:"backup"`
}

// Grown continues after Held with the same number of trees; otherwise it first restores them again.
// It starts Crossplane, measures how long the release takes, and backs up the adopted trees.
func (l *Lab) Grown(ctx context.Context, trees int) (*Grown, error) {
	if l.heldTrees != trees {
		if _, err := l.Held(ctx, trees, 0); err != nil {
			return nil, err
		}
	}
	run := l.held
	defer run.record.End()
	began := time.Now()
	if err := l.start(ctx); err != nil {
		return nil, err
	}
	l.held, l.heldTrees = nil, 0
	g := &Grown{}
	var err error
	if g.Release, err = l.release(ctx, trees, nil, run, began); err != nil {
		return nil, err
	}
	if err := l.adopted(ctx, trees); err != nil {
		return nil, err
	}
	if err := l.cluster.UsePlugin(ctx, true); err != nil {
		return nil, err
	}
	g.Backup, err = l.backUp(ctx, trees, true)

	return g, err
}

// Peak returns the peak memory of the plugin's processes, in bytes.
func (g *Grown) Peak() int64 { return max(g.Release.PollPeak, g.Backup.Peak) }
