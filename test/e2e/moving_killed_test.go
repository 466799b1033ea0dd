package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A commandKill kills a command at its nth change of a mark, before that is stored.
type commandKill struct {
	prefix string

	mu   sync.Mutex
	left int
	kill context.CancelFunc
}

// visit counts the changes that hold and release make to the marks of the tenant's objects.
func (k *commandKill) visit(_ context.Context, a stack.Admission) {
	if a.Status || a.Old == nil || a.New == nil || !strings.HasPrefix(a.New.GetName(), k.prefix) {
		return
	}
	if a.Old.GetAnnotations()[annotationHold] == a.New.GetAnnotations()[annotationHold] {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left--
	if k.left == 0 {
		k.kill()
	}
}

// killed runs a command in the source and kills it at its nth change.
func (s *suite) killed(t *testing.T, k *commandKill, nth int, args ...string) {
	t.Helper()
	ctx, kill := context.WithTimeout(t.Context(), patience)
	defer kill()
	k.mu.Lock()
	k.left, k.kill = nth, kill
	k.mu.Unlock()
	if stdout, stderr, code, err := s.source.Plugin(ctx, "", args...); err == nil {
		t.Errorf("%v ended with %d before its change %d:\n%s%s", args, code, nth, stdout, stderr)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left > 0 {
		t.Errorf("%v was not killed: %d changes are left", args, k.left)
	}
}

// testHoldKilled kills hold and release at several points, and runs them again.
func (s *suite) testHoldKilled(t *testing.T, n *tenant) {
	ctx := t.Context()
	since := s.last(t)
	k := &commandKill{prefix: n.Namespace + "-"}
	p, err := s.source.Check(ctx, "command", checked(), k.visit)
	must(t, err)
	defer func() { must(t, p.Remove(context.WithoutCancel(ctx))) }()
	hold := []string{"hold", "-n", n.Namespace, "--timeout", "2m"}
	release := []string{"release", "-n", n.Namespace, "--yes"}

	// A stopped hold is released.
	s.killed(t, k, 2, hold...)
	s.wantDone(t, release...)
	s.wantGoesOn(t, n)
	// So is a complete one, by a release that is stopped itself.
	s.killed(t, k, 3, hold...)
	s.wantDone(t, hold...)
	s.killed(t, k, 4, release...)
	s.wantDone(t, release...)
	s.wantGoesOn(t, n)
	s.wantNoChanges(t, n, since)
}

// wantDone runs a command in the source that must succeed.
func (s *suite) wantDone(t *testing.T, args ...string) {
	t.Helper()
	if got := command(t, s.source, args...); got.code != 0 {
		t.Fatalf("%v ended with %d:\n%s%s", args, got.code, got.stdout, got.stderr)
	}
}

// wantGoesOn fails unless everything in the source is as it was before a hold.
func (s *suite) wantGoesOn(t *testing.T, n *tenant) {
	t.Helper()
	ctx := t.Context()
	if held := s.held(t, s.source, n); held > 0 {
		t.Errorf("%d objects are held", held)
	}
	must(t, n.AwaitReady(ctx, s.source, n.size))
	now, err := n.Wishes(ctx, s.source)
	must(t, err)
	if diff := gocmp.Diff(n.wishes, now); diff != "" {
		t.Errorf("claims and XRs: -before, +after:\n%s", diff)
	}
}
