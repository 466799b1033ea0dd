package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A commandKill kills a command at its nth change of an object, before that is stored.
type commandKill struct {
	prefix string

	mu   sync.Mutex
	left int
	kill context.CancelFunc
}

// visit counts the changes that hold, release and retire make to the tenant's objects: of the mark,
// and of the finalizers.
func (k *commandKill) visit(_ context.Context, a stack.Admission) {
	const mark = "velero.crossplane.x-k8s.io/hold"
	if a.Status || a.Old == nil || a.New == nil || !strings.HasPrefix(a.New.GetName(), k.prefix) {
		return
	}
	if a.Old.GetAnnotations()[mark] == a.New.GetAnnotations()[mark] && slices.Equal(a.Old.GetFinalizers(), a.New.GetFinalizers()) {
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
	ctx, kill := context.WithTimeout(t.Context(), 2*patience) // An abort waits for up to two minutes if there are backups.
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

// testHandoverKilled kills each command of a handover at several points, and runs it again.
func (s *suite) testHandoverKilled(t *testing.T, n *tenant) {
	ctx := t.Context()
	since := s.last(t)
	k := &commandKill{prefix: n.Namespace + "-"}
	p, err := s.source.Check(ctx, "command", checked(), k.visit)
	must(t, err)
	defer func() { must(t, p.Remove(context.WithoutCancel(ctx))) }()
	hold := []string{"hold", "-n", n.Namespace, "--timeout", "2m"}
	abort := []string{"release", "--handover", "-n", n.Namespace}

	// A stopped hold is aborted.
	s.killed(t, k, 2, hold...)
	s.wantDone(t, abort...)
	s.wantGoesOn(t, n)
	// So is a complete one, by a release that is stopped itself.
	s.killed(t, k, 3, hold...)
	s.wantDone(t, hold...)
	s.killed(t, k, 4, abort...)
	s.wantDone(t, abort...)
	s.wantGoesOn(t, n)
	s.wantNoChanges(t, n, since)

	s.killed(t, k, 5, hold...)
	s.wantDone(t, hold...)
	quiet := s.last(t)
	must(t, n.Backup(ctx, s.source, n.Namespace))
	must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace))
	s.awaitCompleted(t, n.Namespace)
	n.revised = true
	s.settle(t, n)
	file := filepath.Join(t.TempDir(), "adopted.json")
	must(t, os.WriteFile(file, []byte(command(t, s.target, "validate", "-n", n.Namespace, "-o", "json").stdout), 0o600))
	retire := []string{"retire", "-n", n.Namespace, "--report", file, "--yes"}
	s.killed(t, k, 1, retire...)
	s.killed(t, k, 3, retire...)
	s.killed(t, k, 2, retire...)
	s.wantDone(t, retire...)
	s.wantGone(t, n)
	s.settle(t, n)
	s.wantNoWrites(t, n, quiet, s.source)
	s.wantNoChanges(t, n, since)
	s.wantSound(t, n)
}

// wantDone runs a command in the source that must succeed.
func (s *suite) wantDone(t *testing.T, args ...string) {
	t.Helper()
	if got := command(t, s.source, args...); got.code != 0 {
		t.Fatalf("%v ended with %d:\n%s%s", args, got.code, got.stdout, got.stderr)
	}
}

// wantGoesOn fails unless everything in the source is as it was before a handover.
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

// wantGone fails if anything of a tenant is left in the source.
func (s *suite) wantGone(t *testing.T, n *tenant) {
	t.Helper()
	for what, list := range map[string]func(context.Context, *stack.Cluster) ([]unstructured.Unstructured, error){"instances": n.Instances, "XRs": n.Composites, "MRs": n.Managed} {
		left, err := list(t.Context(), s.source)
		must(t, err)
		if len(left) > 0 {
			t.Errorf("%d %s are left in the source, such as %s", len(left), what, left[0].GetName())
		}
	}
}
