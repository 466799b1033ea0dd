package e2e

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cases"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// TestDrawnV1 kills something of v1.20 while cases are restored. The commit draws all of these.
func TestDrawnV1(t *testing.T) { testDrawn(t, stack.V1, "v1.20", (*suite).restoreKilled) }

// TestDrawnV24 restores cases that the commit draws on v2.4, while calls of the network fail.
func TestDrawnV24(t *testing.T) { testDrawn(t, stack.V24, "v2", (*suite).restoreFailing) }

// drawnCases is how many cases are drawn.
const drawnCases = 3

// testDrawn draws cases in which nobody does anything but restore, and restores them. What is not
// Completed is restored again. Then all must be as it was, but for managers of fields, which Velero does
// not write back again after a call that failed.
func testDrawn(t *testing.T, version stack.Version, dir string, restore func(s *suite, t *testing.T, worlds []*world, draw *rand.Rand)) {
	t.Helper()
	t.Parallel()
	seed := drawnSeed(t)
	t.Logf("DRAWN_SEED=%d", seed)
	draw := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // Nothing secret about it.

	loaded, err := cases.Load("../cases", dir)
	must(t, err)
	maps.DeleteFunc(loaded, func(_ string, c *cases.Case) bool { return !c.Plain() })
	names := slices.Sorted(maps.Keys(loaded))
	draw.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[drawnCases:] {
		delete(loaded, name)
	}
	t.Logf("cases: %v", names[:drawnCases])

	s := newCaseStage(t, version, nil)
	worlds := s.restorable(t, loaded, "")
	restore(s, t, worlds, draw)
	for _, w := range worlds {
		w.Expect.Changed = map[string][]string{"* *": {"Managers"}, "* */*": {"Managers"}}
		r, err := drill.AwaitRestore(t.Context(), s.target, w.Name)
		must(t, err)
		if phase := drill.Phase(r); phase != "Completed" {
			t.Logf("the restore of %s is %s", w.Name, phase)
			s.restoreMore(t, s.target, w, &cases.Again{Args: w.Restore})
		}
	}
	s.judgeWorlds(t, worlds)
}

// drawnSeed returns the seed of the environment, to repeat a failed run, or else one that the commit
// gives.
func drawnSeed(t *testing.T) uint64 {
	t.Helper()
	if s := os.Getenv("DRAWN_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		must(t, err)

		return n
	}
	head, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Logf("cannot ask git for the commit, so the seed is always the same: %v", err)
	}
	hash := fnv.New64a()
	_, _ = hash.Write(head)

	return hash.Sum64()
}

// restoreKilled restores worlds, and kills a component, or the plugin, just before one of the objects
// is created.
func (s *suite) restoreKilled(t *testing.T, worlds []*world, draw *rand.Rand) {
	t.Helper()
	ctx := t.Context()
	victims := killedComponents()[:4] // Without the API server Velero can forget a Restore until it is restarted.
	k := kill{victim: victims[draw.IntN(len(victims))]}
	groups, total := []string{"cloud.example.org"}, 0
	for _, w := range worlds {
		groups = append(groups, w.Name+".example.org")
		for name := range w.before.picture {
			if kind, _, _ := strings.Cut(name, " "); strings.HasSuffix(kind, ".example.org") {
				total++
			}
		}
	}
	at := 1 + draw.IntN(max(total/2, 1)) // Some may not be in the backups.
	t.Logf("the %s is killed before object %d of %d", k.victim, at, total)

	created, dead := 0, make(chan error, 1)
	var mu sync.Mutex
	visit := func(ctx context.Context, a stack.Admission) {
		mu.Lock()
		defer mu.Unlock()
		if a.Old != nil || a.New.GetLabels()["velero.io/restore-name"] == "" {
			return
		}
		created++
		if created == at {
			_, err := k.strike(ctx, s.target)
			dead <- err
		}
	}
	p, err := s.target.Check(ctx, "kill", groups, visit)
	must(t, err)
	for _, w := range worlds {
		must(t, drill.Platform{}.StartRestore(ctx, s.target, w.Name, w.backup(), w.Restore...))
	}
	must(t, stack.Wait(ctx, patience, "the kill", func(context.Context) error {
		select {
		case err := <-dead:
			return err
		default:
			return errors.New("it has not come")
		}
	}))
	if k.victim != pluginProcess {
		must(t, s.target.Start(ctx, string(k.victim)))
	}
	for _, w := range worlds {
		s.awaitVerdict(t, w.Name)
	}
	must(t, p.Remove(ctx))
}

// restoreFailing restores worlds while calls fail, until the last of them has ended.
func (s *suite) restoreFailing(t *testing.T, worlds []*world, draw *rand.Rand) {
	t.Helper()
	o := faultyRestore{
		kinds: quick(), rate: 0.05, spared: 10, seed: draw.Uint64(), programs: []string{plugin, string(s.version), stack.CloudProvider},
	}
	p := s.divert(t)
	last := worlds[len(worlds)-1]
	must(t, s.target.Wait(t.Context(), patience, "the backups", func(ctx context.Context) error {
		_, err := s.target.Velero(ctx, "backup", "get", last.backup())

		return err
	}))
	p.Set(o.faults())
	for _, w := range worlds {
		must(t, drill.Platform{}.StartRestore(t.Context(), s.target, w.Name, w.backup(), append(slices.Clone(w.Restore), "--item-operation-timeout", "1m")...))
	}
	q := s.endure(t, p, last.Name)
	s.wantInjected(t, o, q)
	p.Set(nil)
}
