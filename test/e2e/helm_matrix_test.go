//go:build matrix

package e2e

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestMatrixHelmV2(t *testing.T) { testHelm(t, stack.V2, "composed", "alone") }

func TestMatrixHelmV1(t *testing.T) { testHelm(t, stack.V1, "alone") }

// testHelm loses a cluster in which provider-helm has installed charts, which make a password each. It knows by a Secret of Helm's in the namespace that it
// has.
func testHelm(t *testing.T, version stack.Version, dirs ...string) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	chart := serveChart(t)
	scenes := map[string]*helmScene{}
	for _, dir := range dirs {
		for _, name := range []string{"again", "brought", "leftout"} {
			name += "-" + dir
			scenes[name] = newHelmScene(t, name, dir, chart)
		}
	}
	s := newStageOf(t, stack.Options{Crossplane: version, Plugin: true, HelmProvider: true})
	up := func(name string) *stack.Cluster {
		c, err := stack.NewCluster(ctx, s.host, stack.Options{Name: name, Crossplane: version, HelmProvider: true, VeleroArgs: oftener})
		must(t, err)
		for _, n := range scenes {
			must(t, n.Install(ctx, c, ""))
		}
		must(t, c.RestartVelero(ctx))

		return c
	}
	s.source = up("source")
	must(t, s.source.UsePlugin(ctx, true))
	for _, n := range scenes {
		must(t, n.Make(ctx, s.source))
	}
	for _, n := range scenes {
		s.storeRelease(t, n)
	}
	must(t, s.source.Destroy())

	s.target = up("target")
	for _, dir := range dirs {
		t.Run("VeleroAlone/"+dir, func(t *testing.T) { s.testInstalledAgain(t, scenes["again-"+dir]) })
	}
	must(t, s.target.UsePlugin(ctx, true))
	for _, dir := range dirs {
		t.Run("Brought/"+dir, func(t *testing.T) {
			n := scenes["brought-"+dir]
			must(t, n.StartRestore(ctx, s.target))
			s.awaitCompleted(t, n.Name)
			s.wantInstalledOnce(t, n)
		})
		t.Run("LeftOut/"+dir, func(t *testing.T) { s.testLeftOut(t, scenes["leftout-"+dir]) })
	}
}

// storeRelease waits until the chart is installed, remembers what that has made, and backs it up.
func (s *suite) storeRelease(t *testing.T, n *helmScene) {
	t.Helper()
	ctx := t.Context()
	must(t, s.source.Wait(ctx, patience, "the chart to be installed", func(ctx context.Context) error { return n.ready(ctx, s.source) }))
	if n.kind == kindLocalRelease {
		must(t, n.AwaitReady(ctx, s.source))
	}
	must(t, n.remember(ctx, s.source))
	must(t, n.BackUp(ctx, s.source))
}

// testInstalledAgain is the control: Velero alone restores a Release without Secrets, as somebody can have it do, and the chart makes another password. The
// other one comes back too late.
func (s *suite) testInstalledAgain(t *testing.T, n *helmScene) {
	ctx := t.Context()
	must(t, drill.Platform{}.StartRestore(ctx, s.target, n.Name+"-1", n.Name, "--exclude-resources", "secrets"))
	s.awaitCompleted(t, n.Name+"-1")
	s.eventually(t, "the provider to install what it does not find", func(ctx context.Context) error { return n.ready(ctx, s.target) })
	must(t, drill.Platform{}.StartRestore(ctx, s.target, n.Name+"-2", n.Name, "--include-resources", "secrets"))
	s.awaitCompleted(t, n.Name+"-2")
	after, err := n.installedIn(ctx, s.target)
	if err == nil && cmp.Equal(n.before, after) || after.Password == n.before.Password {
		t.Error(errors.Join(err, errors.New("nothing is lost, so the other tests prove nothing")))
	}
}
