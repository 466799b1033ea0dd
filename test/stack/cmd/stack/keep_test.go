package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

type fakePart struct {
	ended, broken error
	// revived counts the attempts.
	revived int
}

func (p *fakePart) Err() error { return p.ended }

func (p *fakePart) Revive(context.Context) ([]string, error) {
	p.revived++
	if p.broken == nil {
		p.ended = nil
	}

	return []string{"velero"}, p.broken
}

// A stack outlives the end of a component, and one that does not start is tried again later.
func TestKeeper(t *testing.T) {
	var out bytes.Buffer
	k, now := keeper{out: &out}, time.Now()
	well, killed := &fakePart{}, &fakePart{ended: errors.New("velero ended unexpectedly: signal: killed\nlast lines of /velero.log: none")}
	k.look(t.Context(), now, well, killed)
	if well.revived != 0 || killed.revived != 1 || !strings.Contains(out.String(), "/velero.log") || !strings.Contains(out.String(), "started again: [velero]") {
		t.Errorf("revived %d and %d; said:\n%s", well.revived, killed.revived, out.String())
	}
	broken := &fakePart{ended: errors.New("velero ended"), broken: errors.New("two plugins")}
	k.look(t.Context(), now, broken)
	k.look(t.Context(), now.Add(reviveAgain-time.Second), broken)
	if broken.revived != 1 || !strings.Contains(out.String(), "trying again in 10s: two plugins") {
		t.Errorf("revived %d times; said:\n%s", broken.revived, out.String())
	}
	k.look(t.Context(), now.Add(reviveAgain), broken)
	if broken.revived != 2 {
		t.Errorf("it must try again; revived %d times", broken.revived)
	}
}
