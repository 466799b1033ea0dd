//go:build matrix

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestMatrixKillsV2(t *testing.T) { testKills(t, stack.V2, 0, killedComponents()[:3]) }

func TestMatrixKillsV1(t *testing.T) { testKills(t, stack.V1, 1, killedComponents()[:3]) }

func TestMatrixKillsElsewhereV2(t *testing.T) { testKills(t, stack.V2, 1, killedComponents()[3:]) }

func TestMatrixKillsElsewhereV1(t *testing.T) { testKills(t, stack.V1, 0, killedComponents()[3:]) }

// testKills kills each victim at each point, each time in a new cluster: only the backup and the
// cloud are left of the old one. Where Velero gives up, every second time release is run, beginning
// with the first kill or the second.
func testKills(t *testing.T, version stack.Version, first int, victims []killedComponent) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	n := s.makeKilled(t, "killed")
	for i, v := range victims {
		for j, p := range killPoints() {
			k := kill{victim: v, point: p, byRelease: (first+i+j)%2 == 1}
			survived := t.Run(k.name(), func(t *testing.T) {
				s.renewTarget(t, n)
				s.testKill(t, n, k)
			})
			if !survived { // A loss shows in all later kills too.
				s.source = s.cluster(t, "source")
				n = s.makeKilled(t, fmt.Sprintf("killed%d%d", i, j))
			}
		}
	}
	if slices.Contains(victims, stack.Velero) {
		t.Run("WithoutThePlugin", func(t *testing.T) {
			s.renewTarget(t, n)
			s.testKillWithoutPlugin(t, n)
		})
	}
}

// testKillWithoutPlugin is the control: a kill without the plugin must be judged as a loss.
func (s *suite) testKillWithoutPlugin(t *testing.T, n *tenant) {
	t.Helper()
	ctx := t.Context()
	must(t, s.target.UsePlugin(ctx, false))
	w, remove := s.kill(t, n, kill{victim: stack.Velero, point: killPointOf("10 % restored")})
	defer remove()
	must(t, n.StartRestore(ctx, s.target, n.Namespace+"-again", n.Namespace))
	_, err := drill.AwaitRestore(ctx, s.target, n.Namespace+"-again")
	must(t, err)
	s.eventually(t, "the damage", func(ctx context.Context) error {
		got, err := n.Compare(ctx, s.target, s.cloud, n.before)
		if err == nil && got.Creates == 0 {
			err = fmt.Errorf("there is no damage: %+v", got)
		}

		return err
	})
	wrong := s.unsound(ctx, n)
	if wrong == nil {
		t.Error("the loss is judged sound")
	}
	t.Logf("%s was killed: %s. Without the plugin:\n%v", stack.Velero, w.seen, wrong)
}

// makeKilled fills a namespace with a user's own settings, backs it up, and loses the source.
func (s *suite) makeKilled(t *testing.T, namespace string) *tenant {
	t.Helper()
	n := s.tenant(t, s.source, drill.Platform{Namespace: namespace, Without: []string{"database"}})
	s.settings(t, n)
	s.backUp(t, s.source, n)
	must(t, s.source.Destroy())

	return n
}

// renewTarget loses the target and starts another one with the tenant's Composition. Its Velero
// polls often, and its provider observes often.
func (s *suite) renewTarget(t *testing.T, n *tenant) {
	t.Helper()
	ctx := t.Context()
	if s.target != nil {
		must(t, s.target.Destroy())
	}
	var err error
	s.target, err = stack.NewCluster(ctx, s.host, stack.Options{
		Name: "target", Crossplane: s.version, Plugin: true,
		VeleroArgs: oftener, ProviderArgs: []string{"--poll", "4s"},
	})
	must(t, err)
	must(t, n.Install(ctx, s.target))
	must(t, n.Compose(ctx, s.target))
	must(t, s.target.RestartVelero(ctx))
}
