package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A kill is the kill of a victim at a point of a restore into a new cluster.
type kill struct {
	victim killedComponent
	point  killPoint
	// byRelease is true if a user runs release, not a second restore, after Velero has given up.
	byRelease bool
}

func (k kill) name() string { return string(k.victim) + "/" + k.point.name }

// testKill kills a victim, restarts it, recovers as a user would if Velero gives up, and expects
// all to be unchanged.
func (s *suite) testKill(t *testing.T, n *tenant, k kill) {
	t.Helper()
	ctx := t.Context()
	n.forgotten = ""
	w, remove := s.kill(t, n, k)
	defer remove()
	phase := s.awaitVerdict(t, n.Namespace)
	t.Logf("%s was killed: %s. The restore is %s", k.victim, w.seen, phase)
	if phase != "Completed" {
		s.finish(t, n, k)
	}
	_, err := drill.AwaitRestore(ctx, s.target, n.Namespace)
	must(t, err)
	s.settle(t, n)
	s.wantSound(t, n)
	s.wantNothingLeft(t, n)
}

// kill restores, kills at the point, and restarts the victim. The returned function ends the watch.
func (s *suite) kill(t *testing.T, n *tenant, k kill) (w *killWatch, remove func()) {
	t.Helper()
	ctx := t.Context()
	w = newKillWatch(n, k.point, func() (func() error, error) { return k.strike(ctx, s.target) })
	w.unsent = k.point.unsent && k.victim == stack.Velero
	p, err := s.target.Check(ctx, "kill", checked(), w.visit)
	must(t, err)
	if k.point.polled {
		must(t, s.target.Stop(stack.CloudProvider))
	}
	must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace))
	if k.point.polled {
		must(t, drill.AwaitOperations(ctx, s.target, n.Namespace))
		must(t, s.target.Start(ctx, stack.CloudProvider))
	}
	s.awaitKill(t, n, w)
	must(t, w.err)
	if k.victim != pluginProcess {
		must(t, s.target.Start(ctx, string(k.victim)))
	}

	return w, func() { must(t, p.Remove(ctx)) }
}

// strike kills the victim at once, or returns the function that kills it while it is busy.
func (k kill) strike(ctx context.Context, c *stack.Cluster) (rest func() error, err error) {
	switch {
	case k.victim != pluginProcess:
		return nil, c.Crash(string(k.victim))
	case k.point.busy:
		return c.CrashPluginAtWork(ctx)
	default:
		return nil, c.CrashPlugin(ctx)
	}
}

// awaitKill waits until the victim is dead. It fails if the restore ends before that.
func (s *suite) awaitKill(t *testing.T, n *tenant, w *killWatch) {
	t.Helper()
	must(t, stack.Wait(t.Context(), patience, "the point to kill at", func(ctx context.Context) error {
		select {
		case <-w.killed:
			return nil
		default:
		}
		if phase, err := ended(ctx, s.target, n.Namespace); err == nil && !w.hasFired() {
			return stack.Never(errors.New("the restore is " + phase))
		}

		return errors.New("it has not come")
	}))
}

// awaitVerdict waits until a restore is Completed or has an error, and restarts each component that
// dies of the kill, as a kubelet would. A user who sees an error need not wait until Velero stops
// waiting for what is missing, by default four hours.
func (s *suite) awaitVerdict(t *testing.T, restore string) (phase string) {
	t.Helper()
	for {
		err := s.target.Wait(t.Context(), patience, "the end of the restore or an error of it", func(ctx context.Context) error {
			r, err := get(ctx, s.target, veleroRestore, "velero", restore)
			if err != nil {
				return err
			}
			if phase = drill.Phase(r); phase != "Completed" && !strings.Contains(phase, "Failed") {
				return errors.New("it is " + phase)
			}

			return nil
		})
		dead, reviveErr := s.target.Revive(t.Context())
		must(t, reviveErr)
		if len(dead) == 0 {
			must(t, err)

			return phase
		}
		t.Logf("it also killed %v", dead)
	}
}

// finish does what a user does when Velero has given up. Release can adopt only what was restored,
// so it must report what is missing.
func (s *suite) finish(t *testing.T, n *tenant, k kill) {
	t.Helper()
	if !k.byRelease {
		s.restore(t, n, n.Namespace+"-again")

		return
	}
	stray := s.unreturned(t, n)
	if stray != nil && !drill.Held(stray) { // Else its mark has it.
		n.forgotten = stray.GetKind() + "/" + stray.GetName()
	}
	r := command(t, s.target, "release", "--restore", n.Namespace)
	missing := s.missing(t, n)
	t.Logf("release, with %d objects missing, exits with %d:\n%s%s", missing, r.code, r.stdout, r.stderr)
	if missing == 0 && r.code == 0 {
		if strings.Contains(r.stdout, "[ManagersNotRestored]") {
			t.Errorf("release must restore the managedFields of %s from the mark", stray.GetName())
		}

		return
	}
	reported := r.code == 3
	if missing > 0 && r.code == 0 { // A resource without its XR is not held, and of an instance without objects nothing is.
		v := command(t, s.target, "validate", "--restore", n.Namespace)
		reported = v.code == 3 || strings.Contains(r.stdout, "restore again if anything is missing")
	}
	if missing == 0 || !reported {
		t.Errorf("%d objects are missing, and no output says so (exit code %d)\n%s%s", missing, r.code, r.stdout, r.stderr)
	}
	s.restore(t, n, n.Namespace+"-again")
}

// unreturned returns the object that a restore created without writing the managedFields of the
// backup back, because Velero gave up. There can be one; nil if there is none. Release does not
// read the backup, so the managers of its fields are lost.
func (s *suite) unreturned(t *testing.T, n *tenant) *unstructured.Unstructured {
	t.Helper()
	objects, err := n.Objects(t.Context(), s.target)
	must(t, err)
	var found *unstructured.Unstructured
	for _, u := range objects {
		created := u.GetCreationTimestamp()
		if !slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == velero && !e.Time.Before(&created) }) {
			continue
		}
		if found != nil {
			t.Errorf("Velero was killed once, and has not written the managedFields of %s and %s back", found.GetName(), u.GetName())
		}
		found = &u
	}

	return found
}

// missing returns how many objects were not restored.
func (s *suite) missing(t *testing.T, n *tenant) int {
	t.Helper()
	wishes, err := n.Wishes(t.Context(), s.target)
	must(t, err)
	mrs, err := n.Managed(t.Context(), s.target)
	must(t, err)

	return len(n.wishes) + len(n.before.Slots) - len(wishes) - len(mrs)
}
