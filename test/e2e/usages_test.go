package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// two is the number of instances of a scene of Usages.
const two = 2

// These are the scenes of Usages.
const (
	aloneLeft    = "alone-left"
	aloneReplay  = "alone-replay"
	guarded      = "guarded"
	noUser       = "no-user"
	left         = "left"
	leftInTarget = "behind"
	terminating  = "terminating"
	composed     = "composed"
	replay       = "replay"
)

const attempt = "usage.crossplane.io/deletion-attempt-with-policy"

func usageScenes(s *suite) map[string]*shape {
	alone, order := 3, 4 // A bucket, a network and a Usage; with an XR.
	if s.version == stack.V1 {
		order++ // And its claim.
	} else {
		alone += 2 // And a ConfigMap with a Usage.
	}
	scene := func(dir string, size int) drill.Scene {
		return drill.Scene{Dir: "usages-" + dir, Count: two, Size: two * size}
	}
	scenes := map[string]*shape{
		aloneLeft:    {reason: "Velero alone restores a Usage that its XR does not list.", Scene: scene("left", order-1), last: s.leaveBehind},
		aloneReplay:  {reason: "Velero alone restores the record of an attempted deletion, and Crossplane deletes the object.", Scene: scene("replay", alone), last: s.tryToDelete},
		guarded:      {reason: "A used object is protected as soon as it is restored, and can be deleted when it is not used any more.", Scene: scene("replay", alone)},
		noUser:       {reason: "Without its user an object stays protected, and the restore reports how to end that.", Scene: scene("replay", alone), last: s.leaveOutUsers},
		left:         {reason: "A Usage that its XR does not list is not restored, or is reported.", Scene: scene("left", order-1), last: s.leaveBehind},
		leftInTarget: {reason: "One that existed before the restore is reported.", Scene: scene("left", order-1)},
		terminating:  {reason: "A Usage that is being deleted does not come back.", Scene: scene("left", order-1), last: s.leaveTerminating},
		composed:     {reason: "Composed resources are protected as before; a Usage that is being deleted is not changed.", Scene: scene("composed", order)},
		replay:       {reason: "An object that a user tried to delete before the backup is not deleted after the restore.", Scene: scene("replay", alone), last: s.tryToDelete},
	}
	for name, n := range scenes {
		if s.version == stack.V1 {
			n.BackupArgs = selected(name)
		}
	}
	scenes[leftInTarget].last = s.foresee(scenes[leftInTarget])

	return scenes
}

// testUsages restores Usages of all kinds into a cluster that has only the platform.
func testUsages(t *testing.T, version stack.Version, dir string) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	s := newStage(t, version)
	scenes := usageScenes(s)
	isAlone := func(name string) bool { return strings.HasPrefix(name, "alone-") }
	s.fillScenes(t, dir, scenes, isAlone)

	s.target = s.bare(t, "target")
	for _, n := range scenes {
		must(t, n.Install(ctx, s.target, ""))
	}
	must(t, s.target.RestartVelero(ctx))
	t.Run("VeleroAlone", func(t *testing.T) {
		for _, name := range []string{aloneLeft, aloneReplay} {
			must(t, scenes[name].StartRestore(ctx, s.target))
		}
		t.Run("Leftover", func(t *testing.T) { s.testLeftoverAlone(t, scenes[aloneLeft]) })
		t.Run("Replay", func(t *testing.T) { s.testReplayAlone(t, scenes[aloneReplay]) })
	})

	must(t, s.target.UsePlugin(ctx, true))
	s.leaveInTarget(t, scenes[leftInTarget])
	var restored []string
	for name, n := range scenes {
		if !isAlone(name) {
			must(t, n.StartRestore(ctx, s.target))
			restored = append(restored, name)
		}
	}
	t.Run("Guarded", func(t *testing.T) { s.testGuarded(t, scenes[guarded]) })
	for _, name := range restored {
		s.awaitCompleted(t, name)
	}
	t.Run("NoUser", func(t *testing.T) { s.testNoUser(t, scenes[noUser]) })
	t.Run("LeftoverInBackup", func(t *testing.T) { s.testLeftoverInBackup(t, scenes[left]) })
	t.Run("LeftoverInTarget", func(t *testing.T) { s.testLeftoverInTarget(t, scenes[leftInTarget]) })
	t.Run("TerminatingInSource", func(t *testing.T) { s.testTerminatingInSource(t, scenes[terminating]) })
	t.Run("Composed", func(t *testing.T) { s.testRestored(t, scenes[composed]) })
	t.Run("TerminatingInTarget", func(t *testing.T) { s.testTerminatingInTarget(t, scenes[composed]) })
	t.Run("ReplayForgotten", func(t *testing.T) { s.testReplayForgotten(t, scenes[replay]) })
	now, err := s.cloud.Journal(ctx, 0)
	must(t, err)
	t.Run("NothingReplayed", func(t *testing.T) {
		for _, name := range []string{noUser, replay} {
			s.wantChanges(t, scenes[name], now[len(now)-1].Seq, map[string]int{"delete Network": map[string]int{replay: two}[name]})
			used, err := s.used(ctx, s.target, name)
			must(t, err)
			if want := map[bool]int{true: two, false: 2 * two}[version.IsV1()]; len(used) != want {
				t.Errorf("%s The used objects are %v", scenes[name].reason, names(used))
			}
		}
	})
	t.Run("Settled", func(t *testing.T) {
		for _, name := range []string{left, leftInTarget, terminating, composed} {
			s.wantChanges(t, scenes[name], now[len(now)-1].Seq, nil)
		}
	})
}

// wantChanges expects exactly these calls for a scene in the cloud, once each of its MRs was
// reconciled since the entry of the cloud's journal.
func (s *suite) wantChanges(t *testing.T, n *shape, since int64, want map[string]int) {
	t.Helper()
	ctx := t.Context()
	must(t, s.awaitBuckets(ctx, n, since))
	changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
	must(t, err)
	got := map[string]int{}
	for _, c := range changes {
		got[string(c.Op)+" "+string(c.Kind)]++
	}
	for call, n := range want {
		if n == 0 {
			delete(want, call)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s\nIn the cloud for %s: -want, +got:\n%s", n.reason, n.Name, diff)
	}
}

// awaitBuckets waits until each bucket of a scene was read since the entry of the cloud's journal.
func (s *suite) awaitBuckets(ctx context.Context, n *shape, since int64) error {
	return s.target.Wait(ctx, patience, "the buckets of "+n.Name+" to be reconciled once more", func(ctx context.Context) error {
		entries, err := s.cloud.Journal(ctx, since, api.Read)
		if err != nil {
			return err
		}
		read := map[string]bool{}
		for _, e := range entries {
			read[string(e.Kind)+" "+e.ID] = true
		}
		for id := range n.ledger.External {
			if strings.HasPrefix(id, string(api.Bucket)) && !read[id] {
				return fmt.Errorf("%s was not", id)
			}
		}

		return nil
	})
}
