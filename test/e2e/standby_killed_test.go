package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A refreshKill kills Velero, and the plugin with it, at the nth object that a restore refreshes,
// before that is stored.
type refreshKill struct {
	restore string

	mu   sync.Mutex
	left int
	kill func()
}

func (k *refreshKill) visit(_ context.Context, a stack.Admission) {
	const label = "velero.io/restore-name"
	if a.Old == nil || a.New == nil || a.Old.GetLabels()[label] == k.restore || a.New.GetLabels()[label] != k.restore {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left--
	if k.left == 0 {
		k.kill()
	}
}

func (k *refreshKill) done(context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left > 0 {
		return fmt.Errorf("%d objects are left", k.left)
	}

	return nil
}

// testRefreshKilled kills Velero at several points of a refresh. Another restore of the same backup
// must end it.
func (s *suite) testRefreshKilled(t *testing.T, n *tenant, before map[string]string) {
	ctx := t.Context()
	since := s.last(t)
	s.changeTo(t, n, "eu-south")
	s.awaitCall(t, s.source, n, since, api.Update)
	s.backUpScheduled(t, s.source, n, "killed")
	for _, nth := range []int{1, 4} {
		name := fmt.Sprintf("killed-%d", nth)
		k := &refreshKill{restore: name, left: nth, kill: func() {
			if err := s.target.Kill(stack.Velero); err != nil {
				t.Error(err)
			}
		}}
		p, err := s.target.Check(ctx, "refresh", checked(), k.visit)
		must(t, err)
		must(t, n.StartRestore(ctx, s.target, name, "killed", standbyRestore...))
		s.eventually(t, "Velero to be killed", k.done)
		must(t, p.Remove(ctx))
		must(t, s.target.Start(ctx, stack.Velero))
		s.eventually(t, "the Restore "+name+" to fail", func(ctx context.Context) error {
			u, err := get(ctx, s.target, veleroRestore, "velero", name)
			if err == nil && drill.Phase(u) != "Failed" {
				err = errors.New("it is " + drill.Phase(u))
			}

			return err
		})
	}
	must(t, n.StartRestore(ctx, s.target, "after-kills", "killed", standbyRestore...))
	s.awaitCompleted(t, "after-kills")
	s.wantHeldBy(t, n, "after-kills")
	s.wantSame(t, n, before)
}
