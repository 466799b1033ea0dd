package live

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// unpaused counts the held XRs that Crossplane was let reconcile, and the released.
func (s *apiServer) unpaused(tb testing.TB) (free, released int) {
	tb.Helper()
	for _, u := range s.all(xorders) {
		h, err := adoption.HoldOf(u)
		switch {
		case err != nil:
			tb.Fatal(err)
		case h == nil:
			released++
		case h.Unpaused != "":
			free++
		}
	}

	return free, released
}

// Crossplane is let reconcile some at a time, and who has to wait is told why.
func TestTurns(t *testing.T) {
	const xrs, turns = 20, 6
	cases := map[string]struct {
		reason      string
		controllers func(u *unstructured.Unstructured) *unstructured.Unstructured
		stuck       time.Duration
		free        int
		released    int
	}{
		"Busy":  {reason: "Crossplane is through with none.", stuck: time.Minute, free: turns},
		"Quick": {reason: "The next begin when those before them are released.", controllers: atWork, stuck: time.Minute, released: xrs},
		"Stuck": {reason: "What Crossplane says nothing of does not keep others back for ever.", stuck: time.Nanosecond, free: xrs},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t)
			first := s.forest(t, xrs, time.Now())
			for _, u := range s.all(xorders) {
				s.put(t, xptest.With(u, xptest.SeenPaused()))
			}
			s.controllers = tc.controllers
			a := brisk(t, s)
			a.turns, a.stuck, a.patience = turns, tc.stuck, 300*time.Millisecond
			plans, err := a.Adopt(context.Background(), selector, first)
			if err != nil {
				t.Fatal(err)
			}
			if free, released := s.unpaused(t); free != tc.free || released != tc.released {
				t.Errorf("%s\n%d of %d XRs are unpaused and %d released, want %d and %d", tc.reason, free, xrs, released, tc.free, tc.released)
			}
			waiting := 0
			for _, plan := range plans {
				if strings.Contains(strings.Join(plan.Waiting, "; "), "its turn: Crossplane is let reconcile 6 XRs at a time") {
					waiting++
				}
			}
			if want := xrs - tc.free - tc.released; waiting != want {
				t.Errorf("%s\n%d wait for their turn, want %d", tc.reason, waiting, want)
			}
		})
	}
}
