//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

func TestMatrixUpjetIdentityV2(t *testing.T) { testUpjetIdentity(t, stack.V2, "v2") }

func TestMatrixUpjetIdentityV1(t *testing.T) { testUpjetIdentity(t, stack.V1, "v1.20") }

// testUpjetIdentity is testIdentity with upjet's MRs, without a setting to observe them first.
func testUpjetIdentity(t *testing.T, version stack.Version, dir string) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	s := newUpjetIdentity(t, version, dir)
	s.fillUpjets(t)
	must(t, s.source.Kill(stack.UpjetProvider))
	must(t, s.source.Destroy())
	s.loseExternal(t)
	s.lost = s.seq(t)

	s.target = s.upjetCluster(t, "target")
	must(t, s.target.Stop(stack.UpjetProvider))
	must(t, s.target.RestartVelero(ctx))
	s.startRestore(t, "alone", "alone", s.restoreAloneArgs()...)
	s.awaitCompleted(t, "alone")
	s.awaitLeftOut(t)
	must(t, s.target.UsePlugin(ctx, true))
	s.restoreUpjets(t)
	t.Run("Inspected", func(t *testing.T) { s.testInspected(t) })
	t.Run("GatedBefore", func(t *testing.T) { s.testGatedBefore(t) })
	t.Run("ObservedFirstBefore", func(t *testing.T) { s.testObservedFirstBefore(t) })

	since := s.seq(t)
	must(t, s.target.Start(ctx, stack.UpjetProvider))
	// All MRs of these, except held or gone ones, must be found before the restore gives up.
	for _, name := range []string{"arn", "gone", "killed"} {
		s.startRestore(t, name, "all", "--include-namespaces", name, "--item-operation-timeout", "60s")
	}
	t.Run("VeleroAlone", func(t *testing.T) {
		t.Run("InFlight", func(t *testing.T) { s.testAloneInFlight(t) })
		t.Run("Gated", func(t *testing.T) { s.testAloneGated(t) })
		if version.IsV1() {
			t.Run("Known", func(t *testing.T) { s.testAloneKnown(t) })
		}
	})
	t.Run("Gated", func(t *testing.T) { s.testGated(t, since) })
	for name, scene := range map[string]string{"ChosenBySetting": "chosen", "ObservedFirst": "first", "OldBackup": "old"} {
		t.Run(name, func(t *testing.T) { s.testSame(t, s.scenes[scene], since) })
	}
	t.Run("Observed", func(t *testing.T) { s.testKept(t, since, "observed", "kept-observed", []any{"Observe"}) })
	t.Run("DifferentName", func(t *testing.T) { s.testKept(t, since, "other", "kept-by-another-name", []any{"*"}) })
	t.Run("InFlight", func(t *testing.T) { s.testInFlight(t) })
	t.Run("NotTheName", func(t *testing.T) { s.testNotTheName(t, "Subnet", "/") })
	t.Run("ObservedGone", func(t *testing.T) { s.testObservedGone(t, "Bucket") })
	t.Run("ProviderKilled", func(t *testing.T) { s.testProviderKilled(t) })
	if version.IsV1() { // TestIdentityV2 covers namespaced MRs.
		t.Run("Known", func(t *testing.T) { s.testKnown(t) })
		t.Run("KnownUnwanted", func(t *testing.T) { s.testKnownUnwanted(t) })
	}
}

// newUpjetIdentity returns the clusters, of which only the source runs. Upjet's conditions about an
// asynchronous create do not last.
func newUpjetIdentity(t *testing.T, version stack.Version, dir string) *identity {
	t.Helper()
	ctx := t.Context()
	set, err := build.Ensure(ctx, os.Stderr, stack.Programs(stack.Options{Crossplane: version, Plugin: true, Gate: true, UpjetProvider: true})...)
	must(t, err)
	host, err := stack.NewHost(ctx, set, "", os.Stderr)
	must(t, err)
	t.Cleanup(func() { must(t, host.Close()) })
	all := identityScenes(version)
	s := &identity{
		suite: &suite{host: host, cloud: api.NewClient(host.CloudURL()), version: version}, dir: filepath.Join("testdata", dir, "upjet", "identity"),
		maker: maker{program: stack.UpjetProvider, announced: "Gateway", silent: "Network"},
		scenes: map[string]*shape{
			"arn":    {reason: "The ID in the status must not become the external-name of a kind whose external-names differ from it."},
			"gone":   {reason: "An external resource that upjet does not find must be reported, and not created again."},
			"killed": {reason: "An external resource that a provider was creating when it was killed may exist."},
			"old":    {reason: "Status comes back from a backup without the plugin too.", Scene: drill.Scene{Dir: all["dropped"].Dir}},
		},
	}
	for _, name := range []string{"pending", "dropped", "chosen", "flight", "gated", "kept", "first"} {
		s.scenes[name] = all[name]
	}
	for _, kind := range upjetKinds() {
		s.kinds = append(s.kinds, schema.GroupVersionKind{Group: s.upjetGroup(), Version: "v1beta1", Kind: kind})
	}
	if version.IsV1() {
		s.scenes["old"].Dir = "dropped"
	}
	s.placeScenes()
	s.source = s.upjetCluster(t, "source")

	return s
}

// upjetCluster starts a cluster, with Velero alone, that has the platform.
func (s *identity) upjetCluster(t *testing.T, name string) *stack.Cluster {
	t.Helper()
	c, err := stack.NewCluster(t.Context(), s.host, stack.Options{Name: name, Crossplane: s.version, Gate: true, UpjetProvider: true, VeleroArgs: oftener})
	must(t, err)
	must(t, drill.Scene{Name: "identity", Dir: s.dir}.Install(t.Context(), c, ""))
	if s.version.IsV1() {
		s.defineKnown(t, c)
	}

	return c
}

// stall stops the cloud from answering the creates of some scenes, creates the scenes, and waits
// until the cloud has executed the calls.
func (s *identity) stall(t *testing.T, scenes ...string) {
	t.Helper()
	for _, name := range scenes {
		for _, by := range s.stalled() {
			if strings.Contains(by, ", "+name) {
				must(t, s.cloud.Fail(t.Context(), api.Fault{Op: api.Create, By: by, Stall: true, Times: 1}))
			}
		}
		must(t, s.scenes[name].Make(t.Context(), s.source))
	}
	for _, name := range scenes {
		s.awaitStalled(t, name)
	}
}

// fillUpjets creates everything in the source, and backs it up. Upjet gives up a synchronous create
// after three minutes, so these come last.
func (s *identity) fillUpjets(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	_, err := s.cloud.Create(ctx, api.Bucket, "kept-observed", api.Spec{Region: "here"})
	must(t, err)
	s.stall(t, "killed")
	s.awaitStarted(t, "killed")
	must(t, s.source.Kill(stack.UpjetProvider))
	must(t, s.source.Start(ctx, stack.UpjetProvider))
	late := []string{"killed", "flight", "pending"}
	ready := slices.DeleteFunc(slices.Sorted(maps.Keys(s.scenes)), func(name string) bool { return slices.Contains(late, name) })
	for _, name := range ready {
		must(t, s.scenes[name].Make(ctx, s.source))
	}
	must(t, s.source.RestartVelero(ctx))
	for _, name := range ready {
		must(t, s.scenes[name].AwaitReady(ctx, s.source))
	}
	s.loseName(t)
	t.Run("ProviderKilledAlone", func(t *testing.T) { s.testMadeTwice(t) })
	s.stall(t, "flight", "pending")
	s.awaitSilent(t)
	for _, n := range s.scenes {
		n.picture, err = n.Picture(ctx, s.source)
		must(t, err)
		n.ledger, err = n.Ledger(ctx, s.cloud)
		must(t, err)
	}
	if s.version.IsV1() {
		s.fillKnown(t)
	}
	s.backUpUpjets(t)
}

// loseName removes an MR's external-name. Without LateInitialize upjet does not write it again.
func (s *identity) loseName(t *testing.T) {
	t.Helper()
	for _, u := range s.managed(t.Context(), t, s.source, "arn") {
		if u.GetAnnotations()["crossplane.io/composition-resource-name"] == "lost" {
			must(t, drill.Patch(t.Context(), s.source, &u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{externalName: nil}}}))
		}
	}
}

// awaitSilent waits until upjet considers unanswered asynchronous creates done. The topic stays
// unobserved until the restore, when it is found by its name.
func (s *identity) awaitSilent(t *testing.T) {
	t.Helper()
	s.awaitSibling(t)
	must(t, s.source.Wait(t.Context(), patience, "upjet to report that it created", func(ctx context.Context) error {
		var missing []error
		for _, u := range s.managed(ctx, t, s.source, "flight") {
			if u.GetKind() == "Topic" {
				s.scenes["flight"].mended = []string{u.GetName()}
			}
			if u.GetKind() != s.announced && u.GetAnnotations()[createSucceeded] == "" {
				missing = append(missing, fmt.Errorf("it does not of %s %s", u.GetKind(), u.GetName()))
			}
		}

		return errors.Join(missing...)
	}))
}

// withoutPlugin returns the scenes that Velero alone backs up.
func withoutPlugin() []string { return []string{"pending", "dropped", "old"} }

// backUpUpjets creates one backup with Velero alone, and one with the plugin.
func (s *identity) backUpUpjets(t *testing.T) {
	t.Helper()
	args := []string{"--include-namespaces", strings.Join(withoutPlugin(), ",")}
	if s.version.IsV1() {
		args = []string{
			"--include-cluster-resources=true", "--or-selector", "scene=pending or crossplane.io/composite=dropped-00 or crossplane.io/composite=old-00 or " +
				"scene in (" + strings.Join([]string{nameRestored, nameUnwanted, nameAlone}, ",") + ")",
		}
	}
	backupWith(t, s.source, "alone", args...)
	must(t, s.source.UsePlugin(t.Context(), true))
	scenes := slices.DeleteFunc(slices.Sorted(maps.Keys(s.scenes)), func(name string) bool { return slices.Contains(withoutPlugin(), name) })
	backupWith(t, s.source, "all", "--include-namespaces", strings.Join(scenes, ","))
	if s.version.IsV1() {
		backupWith(t, s.source, nameBackedUp, "--include-cluster-resources=true", "--selector", "scene="+nameBackedUp)
	}
	logs, err := s.source.Velero(t.Context(), "backup", "logs", "all")
	must(t, err)
	t.Run("BackupWarns", func(t *testing.T) { s.testBackupWarns(t, problems(logs)) })
}

// restoreAloneArgs returns the arguments that limit what Velero alone restores.
func (s *identity) restoreAloneArgs() []string {
	if s.version.IsV1() {
		return []string{clusterResources + "=true", "--or-selector", "scene=pending or crossplane.io/composite=dropped-00 or scene=" + nameAlone}
	}

	return []string{clusterResources + "=true", "--include-namespaces", "pending,dropped"}
}

// restoreUpjets restores the scenes that need no running upjet, and waits until all items exist.
func (s *identity) restoreUpjets(t *testing.T) {
	t.Helper()
	restores := map[string][]string{
		"chosen": {"--annotations", "velero.crossplane.io/external-name-from-id=Record." + s.upjetGroup()},
		"flight": nil, "gated": nil, "kept": nil, "first": nil,
	}
	for _, name := range slices.Sorted(maps.Keys(restores)) {
		s.startRestore(t, name, "all", append([]string{"--include-namespaces", name}, restores[name]...)...)
	}
	old := []string{"--include-namespaces", "old"}
	if s.version.IsV1() {
		old = []string{clusterResources + "=true", "--selector", "crossplane.io/composite=old-00"}
	}
	s.startRestore(t, "old", "alone", old...)
	restores["old"] = old
	if s.version.IsV1() {
		later := []string{clusterResources + "=true", "--item-operation-timeout", "30s", "--selector"}
		s.startRestore(t, nameBackedUp, nameBackedUp, append(later, "scene="+nameBackedUp)...)
		s.startRestore(t, nameRestored, "alone", append(later, "scene="+nameRestored)...)
		s.startRestore(t, nameUnwanted, "alone", append(later, "scene="+nameUnwanted, "--annotations", "velero.crossplane.io/external-name-from-id=none")...)
		restores[nameBackedUp], restores[nameRestored], restores[nameUnwanted] = later, later, later
	}
	for _, name := range slices.Sorted(maps.Keys(restores)) {
		must(t, drill.AwaitOperations(t.Context(), s.target, name))
	}
}

// testInspected expects inspect to name exactly the named MRs that upjet has not observed yet.
func (s *identity) testInspected(t *testing.T) {
	r := command(t, s.target, "inspect", s.download(t, "all"))
	topic := s.scenes["flight"].mended[0]
	wantMessage(t, "the output of inspect for the backup", r.stdout, "NotObserved: Topic", topic)
	if n := linesWith(r.stdout, "NotObserved:"); n != 1 {
		t.Errorf("%d lines name what upjet has not found:\n%s", n, r.stdout)
	}
}
