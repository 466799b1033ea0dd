package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// bare is the scene that is backed up and restored by Velero alone.
const bare = "alone"

// A shape is a scene with its options and its state before the loss.
type shape struct {
	drill.Scene
	reason string
	// last runs in the source when all is Ready.
	last func(ctx context.Context, c *stack.Cluster, s drill.Scene) error
	// check checks the restored scene. By default it must be unchanged.
	check func(t *testing.T, s *suite, n *shape, after drill.Picture, changes []api.Entry)

	picture drill.Picture
	ledger  *drill.Ledger
}

func newStage(t *testing.T, version stack.Version) *suite {
	t.Helper()

	return newStageOf(t, stack.Options{Crossplane: version, Plugin: true, KubernetesProvider: true})
}

// newStageOf returns a suite without clusters. Its host has the programs for the options, and its
// version is that of the first.
func newStageOf(t *testing.T, options ...stack.Options) *suite {
	t.Helper()
	ctx := t.Context()
	set, err := build.Ensure(ctx, os.Stderr, stack.Programs(options...)...)
	must(t, err)
	host, err := stack.NewHost(ctx, set, "", os.Stderr)
	must(t, err)
	t.Cleanup(func() { must(t, host.Close()) })

	return &suite{host: host, cloud: api.NewClient(host.CloudURL()), version: options[0].Crossplane}
}

// platform starts a cluster, with Velero alone, that has the platform of each shape.
func (s *suite) platform(t *testing.T, name string, shapes map[string]*shape) *stack.Cluster {
	t.Helper()
	c, err := stack.NewCluster(t.Context(), s.host, stack.Options{Name: name, Crossplane: s.version, KubernetesProvider: true, VeleroArgs: oftener, Clocks: s.clocks[name]})
	must(t, err)
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		must(t, shapes[name].Install(t.Context(), c, "source.yaml"))
	}

	return c
}

// store waits until a shape is complete, remembers it, and backs it up.
func (s *suite) store(t *testing.T, n *shape) {
	t.Helper()
	ctx := t.Context()
	incomplete := n.Scene
	incomplete.Size = 0
	must(t, incomplete.AwaitReady(ctx, s.source))
	pruned, err := n.Prune(ctx, s.source)
	must(t, err)
	if len(pruned) > 0 {
		t.Logf("Crossplane composed twice, and forgot, of scene %s: %v", n.Name, pruned)
	}
	must(t, n.Change(ctx, s.source))
	must(t, n.AwaitReady(ctx, s.source))
	if n.last != nil {
		must(t, n.last(ctx, s.source, n.Scene))
	}
	n.picture, err = n.Picture(ctx, s.source)
	must(t, err)
	n.ledger, err = n.Ledger(ctx, s.cloud)
	must(t, err)
	must(t, n.BackUp(ctx, s.source))
}

// testRestored expects a Completed restore, protected used objects, and all to be Ready again.
func (s *suite) testRestored(t *testing.T, n *shape) {
	ctx := t.Context()
	s.awaitCompleted(t, n.Name)
	unprotected, err := n.Unprotected(ctx, s.target)
	must(t, err)
	for _, u := range unprotected {
		t.Errorf("right after the restore, %s", u)
	}
	must(t, n.AwaitReady(ctx, s.target))
}

// testSettled expects a restored shape to be unchanged, and nothing to be created or deleted in the
// cloud, once every MR was reconciled since the given entry of the cloud's journal.
func (s *suite) testSettled(t *testing.T, n *shape, since int64) {
	ctx := t.Context()
	must(t, n.AwaitReads(ctx, s.target, s.cloud, since))
	after, err := n.Picture(ctx, s.target)
	must(t, err)
	changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
	must(t, err)
	if n.check != nil {
		n.check(t, s, n, after, changes)
		if t.Failed() {
			t.Log(drill.Problems(ctx, s.target, n.Name))
		}

		return
	}
	wantUnchanged(t, s, n, after, changes)
}

// wantUnchanged expects a shape and its resources in the cloud to be as before.
func wantUnchanged(t *testing.T, s *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	ctx := t.Context()
	ledger, err := n.Ledger(ctx, s.cloud)
	must(t, err)
	diff := cmp.Diff(n.ledger.External, ledger.External)
	if diff != "" || len(changes) > 0 || !cmp.Equal(n.picture, after, cmpopts.EquateEmpty()) {
		t.Log(drill.Problems(ctx, s.target, n.Name)) // Before the differences, which must not be cut off.
	}
	if diff != "" || len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: -before, +after:\n%s%v", n.reason, diff, changes)
	}
	wantSame(t, n, n.picture, after)
}

// wantSame compares two pictures, object by object: in one text the differences would be lost.
func wantSame(t *testing.T, n *shape, before, after drill.Picture) {
	t.Helper()
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, before := before[name]
		is, after := after[name]
		switch {
		case !after:
			t.Errorf("%s\n%s is not there any more", n.reason, name)
		case !before:
			t.Errorf("%s\n%s was not there before: %+v", n.reason, name, is)
		default:
			if diff := cmp.Diff(was, is, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n%s: -before, +after:\n%s", n.reason, name, diff)
			}
		}
	}
}

// testShapeLost is the control: without the damage that it expects, the other tests prove nothing.
func (s *suite) testShapeLost(t *testing.T, n *shape) {
	must(t, n.StartRestore(t.Context(), s.target))
	s.awaitCompleted(t, n.Name)
	s.eventually(t, "damage by Velero alone (the control)", func(ctx context.Context) error {
		picture, err := n.Picture(ctx, s.target)
		if err != nil {
			return err
		}
		changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
		if err == nil && (len(changes) == 0 || cmp.Equal(n.picture, picture, cmpopts.EquateEmpty())) {
			err = fmt.Errorf("%d objects became %d, and there were %d changes in the cloud", len(n.picture), len(picture), len(changes))
		}

		return err
	})
}

// selected returns arguments that back up only one scene's cluster-scoped objects.
func selected(scene string) []string {
	return []string{"--include-namespaces", scene, "--include-cluster-resources=true", "--selector", "scene=" + scene}
}
