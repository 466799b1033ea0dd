package live

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
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
			for _, e := range s.all(events) {
				if e.Object["reason"] == adoption.EventWaiting {
					t.Errorf("%s\nOf a turn that comes by itself nobody is told: %v", tc.reason, e.Object["message"])
				}
			}
		})
	}
}

// A look plans for what can have moved: not for who is adopted, and for who waits for a turn when there is one.
func TestPlan(t *testing.T) {
	w := adoption.NewWorld()
	w.SetTime(time.Now())
	for _, u := range platformOf(xptest.XR("x")) {
		w.Add(u)
	}
	xrs, names := map[xp.ID]*unstructured.Unstructured{}, []string{"a", "b", "c", "d"}
	var refs []xp.Ref
	for _, name := range names {
		x := xptest.XR(name, xptest.SeenPaused())
		if _, err := adoption.Put(x, adoption.Hold{Restore: "velero/monday", Since: time.Now().UTC().Format(time.RFC3339)}); err != nil {
			t.Fatal(err)
		}
		w.AddRestored(x)
		refs, xrs[xp.RefTo(x).ID()] = append(refs, xp.RefTo(x)), x
	}
	p := &poll{Adopter: &Adopter{turns: 2, stuck: time.Hour}, queued: map[xp.ID]bool{}}
	want := []struct {
		reason    string
		steps     string
		adopted   string
		queued    string
		failed    string
		atWork    string
		isDeleted string
	}{
		{reason: "Two begin.", steps: "a b", queued: "c d", isDeleted: "d"},
		{reason: "Nobody looks at the others until there is a turn.", queued: "c d", atWork: "a"},
		{reason: "The next begins when one is to get its settings back.", steps: "a c", queued: "d", atWork: "a b c"},
		{reason: "And so on, for what there is then.", steps: "b c", adopted: "a", failed: "d", atWork: "b c"},
		{reason: "All are adopted in the end.", adopted: "a b c", failed: "d"},
	}
	for n, tc := range want {
		plans, tasks := p.plan(w, refs)
		p.plans = plans
		var steps, adopted, queued, failed []string
		for _, task := range tasks {
			steps = append(steps, task.Target.GetName())
			after := xptest.Merge(task.Target, task.Patch)
			w.AddRestored(after)
			xrs[xp.RefTo(after).ID()] = after
		}
		for _, r := range refs {
			switch plan := plans[r.ID()]; {
			case plan.Done:
				adopted = append(adopted, r.Name)
			case plan.Failed != "":
				failed = append(failed, r.Name)
			case strings.Contains(strings.Join(plan.Waiting, "; "), "its turn"):
				queued = append(queued, r.Name)
			}
			if u := atWork(xrs[r.ID()]); u != nil && strings.Contains(tc.atWork, r.Name) {
				w.AddRestored(u)
				xrs[r.ID()] = u
			}
			if tc.isDeleted == r.Name {
				w.Remove(xrs[r.ID()])
			}
		}
		slices.Sort(steps)
		got := [][]string{steps, adopted, queued, failed}
		if diff := cmp.Diff([][]string{strings.Fields(tc.steps), strings.Fields(tc.adopted), strings.Fields(tc.queued), strings.Fields(tc.failed)}, got,
			cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("Look %d: %s\nsteps, adopted, queued, failed: -want, +got:\n%s", n, tc.reason, diff)
		}
	}
}
