//go:build matrix

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestMatrixKillsV2(t *testing.T) { testKills(t, stack.V2, 0) }

func TestMatrixKillsV1(t *testing.T) { testKills(t, stack.V1, 1) }

// testKills kills each victim at each point, each time in a new cluster: only the backup and the
// cloud are left of the old one. Where Velero gives up, every second time release is run, beginning
// with the first kill or the second.
func testKills(t *testing.T, version stack.Version, first int) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	n := s.makeKilled(t, "killed")
	table := newKillTable(version)
	for i, v := range killedComponents() {
		for j, p := range killPoints() {
			k := kill{victim: v, point: p, byRelease: (first+i+j)%2 == 1}
			survived := t.Run(k.name(), func(t *testing.T) {
				if n == nil { // A loss shows in all later kills too.
					n = s.makeKilledAnew(t, fmt.Sprintf("killed%d%d", i, j))
				}
				s.renewTarget(t, n)
				table.set(k, lost)
				if how := s.testKill(t, n, k); !t.Failed() {
					table.set(k, how)
				}
			})
			if !survived {
				n = nil
			}
		}
	}
	t.Run("WithoutThePlugin", func(t *testing.T) {
		if n == nil {
			n = s.makeKilledAnew(t, "killed-alone")
		}
		s.renewTarget(t, n)
		s.testKillWithoutPlugin(t, n)
	})
	t.Logf("\n%s", table)
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

// A killTable is the outcomes of the kills, by victim and point.
type killTable struct {
	version stack.Version
	outcome map[killedComponent]map[string]string
}

func newKillTable(version stack.Version) *killTable {
	table := &killTable{version: version, outcome: map[killedComponent]map[string]string{}}
	for _, v := range killedComponents() {
		table.outcome[v] = map[string]string{}
	}

	return table
}

func (k *killTable) set(of kill, outcome string) { k.outcome[of.victim][of.point.name] = outcome }

// String returns the table in Markdown.
func (k *killTable) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |", k.version)
	for _, p := range killPoints() {
		fmt.Fprintf(&b, " %s |", p.name)
	}
	fmt.Fprintf(&b, "\n|%s\n", strings.Repeat(" --- |", 1+len(killPoints())))
	tried, survived := 0, 0
	for _, v := range killedComponents() {
		fmt.Fprintf(&b, "| %s |", v)
		for _, p := range killPoints() {
			outcome, ok := k.outcome[v][p.name]
			if ok {
				tried++
			}
			if ok && outcome != lost {
				survived++
			}
			fmt.Fprintf(&b, " %s |", cmp.Or(outcome, "not tried"))
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "\nfaults tried: %d, survived: %d\n", tried, survived)

	return b.String()
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

// makeKilledAnew is makeKilled in a new source.
func (s *suite) makeKilledAnew(t *testing.T, namespace string) *tenant {
	t.Helper()
	s.source = s.cluster(t, "source")

	return s.makeKilled(t, namespace)
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
