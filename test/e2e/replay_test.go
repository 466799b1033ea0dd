package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// A counterexample is a path to damage that the explorer (docs/dev/testing.md) found after a rule was
// removed from the plugin.
type counterexample struct {
	Crossplane string       `json:"crossplane"`
	Mutation   string       `json:"mutation"`
	Reason     string       `json:"reason"`
	Damage     string       `json:"damage"`
	Steps      []replayStep `json:"steps"`
}

// A replayStep is one step of an actor. The tree is the XR a, which composes x and y.
type replayStep struct {
	Actor  string `json:"actor"`
	Verb   string `json:"verb"`
	Object string `json:"object"`
	// Changed are the objects that the step changed.
	Changed []string `json:"changed"`
	// Owner after the step is live, old or none. Held and Paused are the state then.
	Owner  string `json:"owner"`
	Held   bool   `json:"held"`
	Paused bool   `json:"paused"`
}

func (f replayStep) String() string {
	return strings.TrimSpace(f.Actor + " " + f.Verb + " " + f.Object)
}

func readReplay(t *testing.T, name string) counterexample {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "replays", name))
	must(t, err)
	var r counterexample
	must(t, json.Unmarshal(b, &r))

	return r
}

// version returns the version of the rules with which it was found.
func (r counterexample) version() stack.Version {
	return map[string]stack.Version{"v1.20": stack.V1, "v2.3": stack.V2, "after-7627": stack.V24}[r.Crossplane]
}

// hasChange reports whether a user changes the Composition.
func (r counterexample) hasChange() bool {
	return slices.ContainsFunc(r.Steps, func(f replayStep) bool { return f.Actor == "person" })
}

// TestReplay replays one counterexample with every change. TestMatrixReplays replays all.
func TestReplay(t *testing.T) {
	t.Parallel()
	testReplays(t, stack.V2, readReplay(t, "v2.3-without-the-hold.json"))
}

// testReplays replays counterexamples in one cluster, in which one actor at a time runs. There is
// no second cluster: objects are lost by deleting them while no actor runs.
func testReplays(t *testing.T, version stack.Version, replays ...counterexample) {
	t.Helper()
	ctx := t.Context()
	options := stack.Options{Name: "theatre", Crossplane: version, Plugin: true, Gate: true, VeleroArgs: oftener}
	set, err := build.Ensure(ctx, os.Stderr, stack.Programs(options)...)
	must(t, err)
	host, err := stack.NewHost(ctx, set, "", os.Stderr)
	must(t, err)
	t.Cleanup(func() { must(t, host.Close()) })
	s := &suite{host: host, cloud: api.NewClient(host.CloudURL()), version: version}
	s.source, err = stack.NewCluster(ctx, host, options)
	must(t, err)
	s.target = s.source
	must(t, drill.Platform{Crossplane: version}.Install(ctx, s.source))
	s.keepStatus(t, s.source)
	must(t, s.source.RestartVelero(ctx))
	for n, r := range replays {
		t.Run(r.Mutation, func(t *testing.T) {
			letter := fmt.Sprintf("%c", 'a'+n)
			p := &replayRun{suite: s, found: r}
			p.tenant, p.twin = p.cast(t, "replay"+letter), p.cast(t, "twin"+letter)
			s.remember(t, s.source, p.tenant)
			s.backUp(t, s.source, p.twin)
			p.lose(t)
			p.play(t)
			p.wantDamage(t)
			p.restoreTwin(t)
		})
	}
}

// wantDamage expects the damage that the explorer has found on the real stack.
func (p *replayRun) wantDamage(t *testing.T) {
	t.Helper()
	got, err := p.tenant.Compare(t.Context(), p.target, p.cloud, p.tenant.before)
	must(t, err)
	t.Logf("%s %+v", p.found.Reason, got)
	counts := map[string]int{
		"an external resource is created for one that there is (P1)": got.Creates,
		"an external resource is deleted (P1)":                       got.Deletes,
		"a change of a Composition acts on what is not adopted (P4)": got.Deletes,
		"an external resource is there and no XR has it (P2)":        got.Orphans,
	}
	if n, known := counts[p.found.Damage]; !known || n == 0 {
		t.Errorf("the explorer has found the damage %q, and the real stack %+v", p.found.Damage, got)
	}
}

// restoreTwin restores the same tree with the unchanged plugin, while all actors run. The changes
// of the replay are made before.
func (p *replayRun) restoreTwin(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	p.start(t, stack.ControllerManager, stack.Crossplane, stack.CloudProvider)
	want := drill.Outcome{Adopted: 2, Total: 2}
	if p.found.hasChange() {
		changed := p.twin.Platform
		changed.Without = append(slices.Clone(changed.Without), "database")
		must(t, changed.Compose(ctx, p.target))
		want = drill.Outcome{Deletes: 1, Adopted: 1, Total: 2}
	}
	p.restore(t, p.twin, p.twin.Namespace)
	var got drill.Outcome
	err := p.target.Wait(ctx, time.Minute, "the outcome of "+p.twin.Namespace, func(ctx context.Context) (err error) {
		if got, err = p.twin.Compare(ctx, p.target, p.cloud, p.twin.before); err == nil && got != want {
			err = fmt.Errorf("it is %+v", got)
		}

		return err
	})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("with the plugin, %v: -want, +got:\n%s", err, diff)
	}
}
