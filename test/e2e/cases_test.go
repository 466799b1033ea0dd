package e2e

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cases"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// onlyCases makes a run short while one works on a case.
var onlyCases = flag.String("cases", "", "run only the cases whose names match this regular expression")

// TestCasesV2 loses and restores the cases of "make test" in one pair of clusters, on Crossplane v2.
func TestCasesV2(t *testing.T) { testCases(t, stack.V2, "v2", "") }

// TestCasesV1 does so on Crossplane v1.20, where trees begin with claims.
func TestCasesV1(t *testing.T) { testCases(t, stack.V1, "v1.20", "") }

// A world is a case at work.
type world struct {
	*cases.Case
	scene drill.Scene

	// before is its state in the source, and after the one once it is restored.
	before, after *state
	// alone is the copy that Velero restores alone; nil if there is none.
	alone *world
	// theirs are the bystanders; nil if there are none.
	theirs *bystander
	// restores counts the Restores after the first.
	restores int
}

// backup returns the name of the backup that is restored.
func (w *world) backup() string {
	if len(w.Tampered) > 0 {
		return w.Name + "-" + tampered
	}

	return w.Name
}

// A bystander is what a restore must not touch.
type bystander struct {
	scene drill.Scene
	state *state
}

// testCases runs the cases of a tier, or those of the flag.
func testCases(t *testing.T, version stack.Version, dir, tier string) {
	t.Helper()
	t.Parallel()
	loaded, err := cases.Load("../cases", dir)
	must(t, err)
	maps.DeleteFunc(loaded, func(_ string, c *cases.Case) bool { return c.Tier != tier && *onlyCases == "" })
	newCaseStage(t, version, nil).testLoaded(t, loaded, "")
}

// newCaseStage returns a suite for cases, by the clocks of the source's and the target's components.
func newCaseStage(t *testing.T, version stack.Version, clocks map[string]stack.Clocks) *suite {
	t.Helper()
	s := newStageOf(t, stack.Options{Crossplane: version, Plugin: true, KubernetesProvider: true, UpjetProvider: true, Gate: true, Clocks: allOf(clocks)})
	s.clocks = clocks

	return s
}

// testLoaded tests cases of which the names match, or those of the flag.
func (s *suite) testLoaded(t *testing.T, loaded map[string]*cases.Case, match string) {
	t.Helper()
	worlds := s.restorable(t, loaded, match)
	for _, w := range worlds { // Velero restores one after the other, and then polls them all at once.
		must(t, drill.Platform{}.StartRestore(t.Context(), s.target, w.Name, w.backup(), w.Restore...))
	}
	s.takeAll(t, "Restoring", worlds, func(w *world) []cases.Step { return w.Restoring })
	s.each(t, "Ended", worlds, everyWorld, s.testEnded)
	s.takeAll(t, "Restored", worlds, func(w *world) []cases.Step { return w.Restored })
	s.judgeWorlds(t, worlds)
	s.lookAgain(t, worlds)
	if len(s.failed) > 0 {
		t.Logf("Failed: %v", s.failed) // In some hundreds of lines that passed they are hard to find.
	}
}

func everyWorld(*world) bool { return true }

// restorable makes the worlds, backs them up and loses them, restores the controls, and lets happen what
// happens before the restores. It returns those that are backed up.
func (s *suite) restorable(t *testing.T, loaded map[string]*cases.Case, match string) []*world {
	t.Helper()
	ctx := t.Context()
	worlds := newWorlds(t, s.version, loaded, cmp.Or(*onlyCases, match))

	s.source = s.platformOf(t, "source", worlds)
	for _, w := range worlds {
		must(t, w.scene.Make(ctx, s.source))
		if w.alone != nil {
			must(t, w.alone.scene.Make(ctx, s.source))
		}
	}
	must(t, s.source.RestartVelero(ctx))
	t.Run("Backup", func(t *testing.T) { s.backUpWorlds(t, worlds) })
	worlds = slices.DeleteFunc(worlds, func(w *world) bool { return w.before == nil }) // It has failed.
	must(t, s.source.Destroy())

	for _, w := range worlds {
		w.scene.To = w.To
	}
	s.target = s.platformOf(t, "target", slices.DeleteFunc(slices.Clone(worlds), func(w *world) bool { return w.Bare }))
	must(t, s.target.RestartVelero(ctx))
	for _, w := range worlds {
		if w.alone != nil && w.alone.before != nil {
			t.Run("VeleroAlone/"+w.Name, func(t *testing.T) { s.testWorldLost(t, w.alone) })
		}
	}
	must(t, s.target.UsePlugin(ctx, true))
	s.makeBystanders(t, worlds)
	s.takeAll(t, "Before", worlds, func(w *world) []cases.Step { return w.Before })
	for _, w := range worlds {
		s.failAll(t, w)
	}

	return worlds
}

// judgeWorlds waits until restored worlds are settled, and judges each.
func (s *suite) judgeWorlds(t *testing.T, worlds []*world) {
	t.Helper()
	s.each(t, "Ready", worlds, everyWorld, s.awaitSettled)
	since := s.now(t)
	s.each(t, "Judged", worlds, everyWorld, func(t *testing.T, w *world) { t.Helper(); s.testJudged(t, w, since) })
	t.Run("Validated", func(t *testing.T) { s.testWorldsValidated(t, worlds) })
}

// takeAll takes steps of each world that has some, as a test.
func (s *suite) takeAll(t *testing.T, name string, worlds []*world, steps func(w *world) []cases.Step) {
	t.Helper()
	s.each(t, name, worlds, func(w *world) bool { return len(steps(w)) > 0 }, func(t *testing.T, w *world) { t.Helper(); s.take(t, s.target, w, steps(w)) })
}

// each runs a stage of some worlds as a test.
func (s *suite) each(t *testing.T, name string, worlds []*world, of func(w *world) bool, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		for _, w := range worlds {
			if of(w) && !t.Run(w.Name, func(t *testing.T) { test(t, w) }) {
				s.failed = append(s.failed, name+"/"+w.Name)
			}
		}
	})
}

// newWorlds returns the chosen cases by name, with those that break programs last.
func newWorlds(t *testing.T, version stack.Version, all map[string]*cases.Case, match string) []*world {
	t.Helper()
	var worlds []*world
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !regexp.MustCompile(match).MatchString(name) {
			continue
		}
		w := &world{Case: all[name]}
		w.scene = drill.Scene{
			Name: name, Dir: w.Dir, Crossplane: version, Count: w.Count, Namespaces: w.Namespaces, Composed: w.Composed, Store: w.Store,
			BackupArgs: w.Backup, RestoreArgs: w.Restore, Drift: w.Drift, Status: true,
		}
		for _, kind := range w.Kinds {
			w.scene.Kinds = append(w.scene.Kinds, kindOf(t, kind))
		}
		if w.Control {
			w.alone = &world{Case: w.Case, scene: w.scene}
			w.alone.scene.Name = "alone-" + name
		}
		worlds = append(worlds, w)
	}
	slices.SortStableFunc(worlds, func(a, b *world) int {
		switch {
		case a.Breaks == b.Breaks:
			return 0
		case b.Breaks:
			return -1
		default:
			return 1
		}
	})

	return worlds
}

// kindOf parses Kind.version.group.
func kindOf(t *testing.T, text string) schema.GroupVersionKind {
	t.Helper()
	gvk, _ := schema.ParseKindArg(text)
	if gvk == nil {
		t.Fatalf("%q is not of the form Kind.version.group", text)
	}

	return *gvk
}

// platformOf starts a cluster, with Velero alone, that has the platform of each world.
func (s *suite) platformOf(t *testing.T, name string, worlds []*world) *stack.Cluster {
	t.Helper()
	ctx := t.Context()
	c, err := stack.NewCluster(ctx, s.host, stack.Options{
		Name: name, Crossplane: s.version, KubernetesProvider: true, UpjetProvider: true, Gate: true, VeleroArgs: oftener, Clocks: s.clocks[name],
		ProviderArgs: []string{"--timeout", "10m"}, // Otherwise a create that hangs is given up after a minute.
	})
	must(t, err)
	for _, w := range worlds {
		if w.Function {
			s.installFunction(t, c, w.Name)
		}
	}
	// Crossplane takes a second or two for each XRD, so all are there before the first is awaited.
	for _, install := range []func(s drill.Scene) error{
		func(s drill.Scene) error { return s.Put(ctx, c, name+".yaml") },
		func(s drill.Scene) error { return s.Install(ctx, c, name+".yaml") },
	} {
		for _, w := range worlds {
			must(t, install(w.scene))
			if w.alone != nil {
				must(t, install(w.alone.scene))
			}
		}
	}

	return c
}

// backUpWorlds backs up each world, first those without the plugin, once every MR was reconciled again
// since all are Ready: what a provider is told only once goes at the second time.
func (s *suite) backUpWorlds(t *testing.T, worlds []*world) {
	t.Helper()
	ctx := t.Context()
	var with, without []*world
	for _, w := range worlds {
		if w.alone != nil {
			without = append(without, w.alone)
		}
		if w.Unplugged {
			without = append(without, w)
		} else {
			with = append(with, w)
		}
	}
	isReady := map[*world]bool{}
	for _, w := range slices.Concat(without, with) {
		isReady[w] = t.Run("Made/"+w.scene.Name, func(t *testing.T) {
			s.complete(t, s.source, w.scene)
			must(t, w.scene.Change(ctx, s.source))
			must(t, w.scene.AwaitReady(ctx, s.source))
		})
	}
	since := s.now(t)
	for i, w := range slices.Concat(without, with) {
		if i == len(without) {
			must(t, s.source.UsePlugin(ctx, true))
		}
		if isReady[w] {
			t.Run(w.scene.Name, func(t *testing.T) { s.backUpWorld(t, w, since) })
		}
	}
}

// complete waits until a scene is Ready, and deletes what Crossplane has composed twice.
func (s *suite) complete(t *testing.T, c *stack.Cluster, scene drill.Scene) {
	t.Helper()
	must(t, scene.AwaitReady(t.Context(), c))
	pruned, err := scene.Prune(t.Context(), c)
	must(t, err)
	if len(pruned) > 0 {
		t.Logf("Crossplane composed twice, and forgot, of case %s: %v", scene.Name, pruned)
		must(t, scene.AwaitReady(t.Context(), c))
	}
}

// backUpWorld lets happen what happens to a world, remembers it and backs it up.
func (s *suite) backUpWorld(t *testing.T, w *world, since int64) {
	t.Helper()
	ctx := t.Context()
	must(t, w.scene.AwaitReads(ctx, s.source, s.cloud, since))
	s.take(t, s.source, w, w.Made)
	var err error
	w.before, err = s.stateOf(ctx, s.source, w.scene)
	must(t, err)
	backup, err := w.scene.EndOfBackup(ctx, s.source)
	must(t, err)
	logs, _ := s.source.Velero(ctx, "backup", "logs", w.scene.Name)
	if phase := drill.Phase(backup); !isPhase(phase, w.Expect.BackupPhase) {
		wrong, _, _ := unstructured.NestedStringSlice(backup.Object, "status", "validationErrors")
		t.Errorf("%s\nThe Backup is %s: %v\n%s", w.Reason, phase, wrong, problems(logs))
	}
	wantCodes(t, w, "The backup's log", problems(logs), w.Expect.BackupCodes)
	if len(w.Tampered) > 0 {
		s.tamperWith(t, w, backup)
	}
}

// isPhase reports whether a phase is one of those that are wanted, separated by |; Completed if none is.
func isPhase(phase, want string) bool {
	return slices.Contains(strings.Split(cmp.Or(want, "Completed"), "|"), phase)
}

var aCode = regexp.MustCompile(`\[[A-Z][A-Za-z]+\]`)

// wantCodes expects each reason, or one of those that | separates, to be in a text.
func wantCodes(t *testing.T, w *world, what, text string, codes []string) {
	t.Helper()
	for _, code := range codes {
		if !slices.ContainsFunc(strings.Split(code, "|"), func(one string) bool { return strings.Contains(text, "["+one+"]") }) {
			t.Errorf("%s\n%s does not name %s, but %v", w.Reason, what, code, aCode.FindAllString(text, -1))
		}
	}
}

// makeBystanders makes those of all worlds, which the target has the platform of.
func (s *suite) makeBystanders(t *testing.T, worlds []*world) {
	t.Helper()
	ctx := t.Context()
	for _, w := range worlds {
		if w.Alone != "" || w.Bare {
			continue
		}
		w.theirs = &bystander{scene: w.scene}
		w.theirs.scene.Others, w.theirs.scene.OwnNames, w.theirs.scene.Count = true, w.OwnNames, 1
		w.theirs.scene.Drift, w.theirs.scene.To = false, ""
		must(t, w.theirs.scene.Make(ctx, s.target))
	}
	for _, w := range worlds {
		if w.theirs == nil {
			continue
		}
		s.complete(t, s.target, w.theirs.scene)
		s.take(t, s.target, w, w.Theirs)
	}
	since := s.now(t)
	for _, w := range worlds {
		if w.theirs == nil {
			continue
		}
		must(t, w.theirs.scene.AwaitReady(ctx, s.target))
		must(t, w.theirs.scene.AwaitReads(ctx, s.target, s.cloud, since))
		var err error
		w.theirs.state, err = s.stateOf(ctx, s.target, w.theirs.scene)
		must(t, err)
		if len(w.theirs.state.picture) == 0 {
			t.Fatalf("case %s has no bystanders, and does not say why", w.Name)
		}
	}
}

// testWorldLost is the control: without the damage that it expects, the case proves nothing.
func (s *suite) testWorldLost(t *testing.T, w *world) {
	s.failAll(t, w)
	defer func() { must(t, s.cloud.RecoverBy(t.Context(), w.caller(""))) }()
	must(t, w.scene.StartRestore(t.Context(), s.target))
	s.awaitCompleted(t, w.scene.Name)
	s.eventually(t, "damage by Velero alone (the control)", func(ctx context.Context) error {
		picture, err := w.scene.Picture(ctx, s.target)
		if err != nil {
			return err
		}
		if len(picture) < len(w.before.picture) { // The faults keep what is lost in the cloud.
			must(t, s.cloud.RecoverBy(ctx, w.caller("")))
		}
		changes, err := w.scene.Changes(ctx, s.cloud, w.before.ledger.Seq, w.before.ledger.External)
		if err == nil && (len(changes) == 0 || gocmp.Equal(w.before.picture, picture, cmpopts.EquateEmpty())) {
			err = fmt.Errorf("%d objects became %d, and there were %d changes in the cloud", len(w.before.picture), len(picture), len(changes))
		}

		return err
	})
}
