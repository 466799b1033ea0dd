package e2e

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// onlyShapes makes a run short while one works on a shape.
var onlyShapes = flag.String("shapes", "", "run only the shapes whose names match this regular expression, beside the control")

// bare is the scene that is backed up and restored by Velero alone.
const bare = "alone"

// A shape is a scene with its options and its state before the loss.
type shape struct {
	drill.Scene
	reason string
	// target is the platform file of the target beside platform.yaml.
	target string
	// unplugged means that the backup is made without the plugin.
	unplugged bool
	// last runs in the source when all is Ready.
	last func(ctx context.Context, c *stack.Cluster, s drill.Scene) error
	// before runs in the target before the restore; nil for nothing.
	before func(t *testing.T, s *suite, n *shape)
	// restoring runs during the restore; nil for nothing.
	restoring func(t *testing.T, s *suite, n *shape)
	// restored waits until the scene is restored; nil if the restore completes, and all is Ready.
	restored func(t *testing.T, s *suite, n *shape)
	// check checks the restored scene. By default it must be unchanged.
	check func(t *testing.T, s *suite, n *shape, after drill.Picture, changes []api.Entry)

	picture, revisions drill.Picture
	// mended names the objects whose field managers change: those that a user has written to since
	// the restore, those that are observed for the first time, and those that were written while
	// the API server could not convert them, which drops the managers of another version. The
	// plugin and Velero must not be among the managers.
	mended []string
	ledger *drill.Ledger
	// leftovers are the Usages that an XR does not list and that the target has before the restore.
	leftovers []*unstructured.Unstructured
}

// testShapes loses a cluster with every shape of tree, and restores one after the other in a
// cluster that has only the platform.
func testShapes(t *testing.T, version stack.Version, dir string, shapes map[string]*shape) {
	t.Helper()
	testShapesBy(t, nil, version, dir, shapes)
}

// testShapesBy is testShapes with the clocks of the source's and the target's components.
func testShapesBy(t *testing.T, clocks map[string]stack.Clocks, version stack.Version, dir string, shapes map[string]*shape) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	for name, n := range shapes {
		n.Name, n.Crossplane = name, version
		if n.Dir == "" {
			n.Dir = name
		}
		n.Dir = filepath.Join("testdata", dir, n.Dir)
	}
	s := newStageOf(t, stack.Options{Crossplane: version, Plugin: true, KubernetesProvider: true, Clocks: allOf(clocks)})
	s.clocks = clocks
	maps.DeleteFunc(shapes, func(name string, _ *shape) bool {
		return name != bare && !regexp.MustCompile(*onlyShapes).MatchString(name)
	})
	names := slices.Sorted(maps.Keys(shapes))

	s.source = s.platform(t, "source", func(*shape) string { return "source.yaml" }, shapes)
	for _, name := range names {
		must(t, shapes[name].Make(ctx, s.source))
	}
	must(t, s.source.RestartVelero(ctx))
	for _, name := range names {
		if shapes[name].unplugged {
			s.store(t, shapes[name])
		}
	}
	must(t, s.source.UsePlugin(ctx, true))
	for _, name := range names {
		if !shapes[name].unplugged {
			s.store(t, shapes[name])
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == bare })
	must(t, s.source.Destroy())

	s.target = s.platform(t, "target", func(n *shape) string { return n.target }, shapes)
	must(t, s.target.RestartVelero(ctx))
	t.Run("VeleroAlone", func(t *testing.T) { s.testShapeLost(t, shapes[bare]) })
	must(t, s.target.UsePlugin(ctx, true))
	for _, name := range names {
		if n := shapes[name]; n.before != nil {
			n.before(t, s, n)
		}
	}
	// Velero restores one after the other, and then polls them all at once.
	for _, name := range names {
		must(t, shapes[name].StartRestore(ctx, s.target))
	}
	for _, name := range names {
		if n := shapes[name]; n.restoring != nil {
			n.restoring(t, s, n)
		}
	}
	t.Run("Restored", func(t *testing.T) {
		for _, name := range names {
			t.Run(name, func(t *testing.T) { s.testRestored(t, shapes[name]) })
		}
	})
	if ahead := clocks["target"][stack.Velero]; ahead != 0 {
		s.wantAhead(t, names[0], ahead)
	}
	now, err := s.cloud.Journal(ctx, 0)
	must(t, err)
	t.Run("Settled", func(t *testing.T) {
		for _, name := range names {
			t.Run(name, func(t *testing.T) { s.testSettled(t, shapes[name], now[len(now)-1].Seq) })
		}
	})
	t.Run("Validated", func(t *testing.T) { s.testValidated(t, shapes) })
}

// wantAhead expects Velero's clock to be ahead of the API server's (the control).
func (s *suite) wantAhead(t *testing.T, restore string, ahead time.Duration) {
	t.Helper()
	u, err := drill.AwaitRestore(t.Context(), s.target, restore)
	must(t, err)
	at, _, _ := unstructured.NestedString(u.Object, "status", "startTimestamp")
	began, err := time.Parse(time.RFC3339, at)
	must(t, err)
	if off := began.Sub(u.GetCreationTimestamp().Time) - ahead; off.Abs() > 2*time.Minute {
		t.Errorf("Velero's clock must be %s ahead; it is off by %s", ahead, off)
	}
}

// testValidated expects validate to report only real problems: the damage by Velero alone, and
// Usages that were left behind before.
func (s *suite) testValidated(t *testing.T, shapes map[string]*shape) {
	v, r := s.judge(t)
	if r.stderr != "" {
		t.Errorf("validate wrote %s", r.stderr)
	}
	for _, p := range v.Problems {
		at := p.Object.Namespace
		if at == "" {
			at = p.Object.Name
		}
		if at == bare || strings.HasPrefix(at, bare+"-") {
			continue
		}
		left := slices.ContainsFunc(slices.Collect(maps.Values(shapes)), func(n *shape) bool {
			return slices.ContainsFunc(n.leftovers, func(u *unstructured.Unstructured) bool { return u.GetName() == p.Object.Name })
		})
		if p.Code != "UsageLeftBehind" || !left {
			t.Errorf("validate reports a problem that does not exist: %+v", p)
		}
	}
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
func (s *suite) platform(t *testing.T, name string, extra func(n *shape) string, shapes map[string]*shape) *stack.Cluster {
	t.Helper()
	c, err := stack.NewCluster(t.Context(), s.host, stack.Options{Name: name, Crossplane: s.version, KubernetesProvider: true, VeleroArgs: oftener, Clocks: s.clocks[name]})
	must(t, err)
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		must(t, shapes[name].Install(t.Context(), c, extra(shapes[name])))
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
	n.revisions, err = n.Revisions(ctx, s.source)
	must(t, err)
	n.ledger, err = n.Ledger(ctx, s.cloud)
	must(t, err)
	must(t, n.BackUp(ctx, s.source))
}

// testRestored expects a Completed restore, protected used objects, and all to be Ready again.
func (s *suite) testRestored(t *testing.T, n *shape) {
	ctx := t.Context()
	if n.restored != nil {
		n.restored(t, s, n)

		return
	}
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
	want := maps.Clone(n.picture)
	for _, name := range n.mended {
		l := want[name]
		l.Managers = after[name].Managers.Without("velero")
		want[name] = l
	}
	diff := cmp.Diff(n.ledger.External, ledger.External)
	if diff != "" || len(changes) > 0 || !cmp.Equal(want, after, cmpopts.EquateEmpty()) {
		t.Log(drill.Problems(ctx, s.target, n.Name)) // Before the differences, which must not be cut off.
	}
	if diff != "" || len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: -before, +after:\n%s%v", n.reason, diff, changes)
	}
	wantSame(t, n, want, after)
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
