package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

const (
	externalName   = "crossplane.io/external-name"
	createPending  = "crossplane.io/external-create-pending"
	annotationHold = "velero.crossplane.x-k8s.io/hold"
	observeFirst   = "velero.crossplane.io/observe-first=true"
)

func TestIdentityV2(t *testing.T) { testIdentity(t, stack.V2, "v2") }

// An identity is the clusters of a test of what happens to the identity of MRs and to status. Some
// kinds of the provider are asynchronous.
type identity struct {
	*suite
	maker

	dir    string
	scenes map[string]*shape
	// provider is the command line of the cloud's provider.
	provider []string
	// others is true if the clusters have kinds like those of other providers: one without
	// managementPolicies, and those whose external-name rules are known.
	others bool
	// lost is the number of the last journal entry of the cloud that the source caused.
	lost int64
	// uids are the UIDs that the MRs of the scene gated had before the provider ran.
	uids map[string]types.UID
}

// testIdentity loses a cluster. The identity of some of its MRs is known, of some only to the
// provider's memory, and of some to nothing. It restores everything into the target while the
// provider is down, as in a new cluster: first with Velero alone, then with the plugin.
func testIdentity(t *testing.T, version stack.Version, dir string) {
	t.Helper()
	testIdentityBy(t, nil, version, dir)
}

// testIdentityBy is testIdentity with the clocks of the source's and the target's components.
func testIdentityBy(t *testing.T, clocks map[string]stack.Clocks, version stack.Version, dir string) {
	t.Helper()
	t.Parallel()
	provider := []string{
		"--async", "Database.cloud.m.example.org,Network.cloud.example.org", "--async-arn", "Database.cloud.example.org", "--unruled", "Bucket.cloud.example.org",
	}
	if version == stack.V1 {
		provider = []string{"--async", "Database.cloud.example.org,Network.cloud.example.org"}
	}
	s := newIdentity(t, &identity{
		suite: &suite{version: version, clocks: clocks}, maker: ownMaker(version), dir: filepath.Join("testdata", dir, "identity"), scenes: identityScenes(version),
		provider: provider, others: version != stack.V1,
	})
	s.fill(t)
	s.backUpAll(t)
	must(t, s.source.Destroy())
	s.loseExternal(t)
	s.lost = s.seq(t)

	s.target = s.cluster(t, "target")
	must(t, s.target.Stop(stack.CloudProvider))
	must(t, s.target.RestartVelero(t.Context()))
	s.restoreAlone(t)
	must(t, s.target.UsePlugin(t.Context(), true))
	s.restoreAll(t)
	t.Run("GatedBefore", func(t *testing.T) { s.testGatedBefore(t) })
	t.Run("ObservedFirstBefore", func(t *testing.T) { s.testObservedFirstBefore(t) })

	since := s.seq(t)
	must(t, s.target.Start(t.Context(), stack.CloudProvider))
	if version != stack.V1 {
		t.Run("DeletedWhileObserved", func(t *testing.T) { s.testDeletedWhileObserved(t) })
	}
	t.Run("VeleroAlone", func(t *testing.T) {
		t.Run("Lost", func(t *testing.T) { s.testAloneLost(t) })
		t.Run("InFlight", func(t *testing.T) { s.testAloneInFlight(t) })
		t.Run("Gated", func(t *testing.T) { s.testAloneGated(t) })
		if version != stack.V1 {
			t.Run("Known", func(t *testing.T) { s.testAloneKnown(t) })
		}
	})
	t.Run("Gated", func(t *testing.T) { s.testGated(t, since) })
	for name, scene := range map[string]string{"ProvenByPeers": "proven", "ChosenBySetting": "chosen", "ObservedFirst": "first"} {
		t.Run(name, func(t *testing.T) { s.testSame(t, s.scenes[scene], since) })
	}
	t.Run("Observed", func(t *testing.T) { s.testKept(t, since, "observed", "kept-observed", []any{"Observe"}) })
	t.Run("DifferentName", func(t *testing.T) { s.testKept(t, since, "other", "kept-by-another-name", []any{"*"}) })
	t.Run("InFlight", func(t *testing.T) { s.testInFlight(t) })
	t.Run("Informed", func(t *testing.T) { s.testInformed(t, since) })
	t.Run("OldBackup", func(t *testing.T) { s.testSame(t, s.scenes["old"], since) })
	if version != stack.V1 {
		t.Run("Known", func(t *testing.T) { s.testKnown(t) })
		t.Run("KnownUnwanted", func(t *testing.T) { s.testKnownUnwanted(t) })
		t.Run("NotTheName", func(t *testing.T) { s.testNotTheName(t, "Database", "arn:cloud:database:") })
		t.Run("ObservedGone", func(t *testing.T) { s.testObservedGone(t, "Bucket") })
		t.Run("NotObservable", func(t *testing.T) { s.testNotObservable(t) })
		t.Run("ProviderKilled", func(t *testing.T) { s.testProviderKilled(t) })
		t.Run("ProviderHeedless", func(t *testing.T) { s.testHeedless(t) })
	}
}

func identityScenes(version stack.Version) map[string]*shape {
	scenes := map[string]*shape{
		"lost":       {reason: "After a restore by Velero alone, the provider creates a second external resource."},
		"pending":    {reason: "Velero alone restores an MR that its provider refuses to reconcile."},
		"dropped":    {reason: "After a restore by Velero alone, Crossplane deletes the resources for which a function finds no status.", Scene: drill.Scene{Dir: "gated"}},
		"proven":     {reason: "A missing external-name is the ID in the status, if the two are equal in other MRs of the kind."},
		"chosen":     {reason: "A user can set that rule for a kind."},
		"flight":     {reason: "Only a user can find out whether an external resource that was being created exists."},
		"gated":      {reason: "A function that reads status must find it at the first reconcile, or Crossplane deletes the resources that it leaves out."},
		"kept":       {reason: "External-names and policies are unchanged."},
		"uninformed": {reason: "After a restore by Velero alone, Crossplane deletes the resources that a function leaves out when it lacks an EnvironmentConfig."},
		"awaited":    {reason: "An XR waits for the EnvironmentConfig that its pipeline names.", Scene: drill.Scene{Dir: "informed"}},
		"carried":    {reason: "An EnvironmentConfig comes with the namespace of an XR whose pipeline names it.", Scene: drill.Scene{Dir: "informed"}},
		"old":        {reason: "Status comes back from a backup without the plugin too.", Scene: drill.Scene{Dir: "gated"}},
		"first":      {reason: "The provider only observes until it has found the external resource."},
	}
	if version == stack.V1 {
		scenes["dropped"].Dir, scenes["old"].Dir = "", "dropped"
	} else {
		scenes["uninformed"].Dir = "informed"
		scenes["forsaken"] = &shape{reason: "The external resource of an MR that was deleted must not be forgotten.", Scene: drill.Scene{Dir: "gone"}}
		scenes["heedless"] = &shape{reason: "A provider that ignores the pause creates a second external resource, which must be reported."}
		maps.Copy(scenes, rarerScenes())
	}

	return scenes
}

// alone returns the scenes that Velero alone backs up. It restores all of them but old.
func alone() []string { return []string{"lost", "pending", "dropped", "uninformed", "old"} }

// newIdentity starts a source.
func newIdentity(t *testing.T, s *identity) *identity {
	t.Helper()
	ctx := t.Context()
	set, err := build.Ensure(ctx, os.Stderr, stack.Programs(stack.Options{Crossplane: s.version, Plugin: true, Gate: true, Clocks: allOf(s.clocks)})...)
	must(t, err)
	s.host, err = stack.NewHost(ctx, set, "", os.Stderr)
	must(t, err)
	t.Cleanup(func() { must(t, s.host.Close()) })
	s.cloud = api.NewClient(s.host.CloudURL())
	s.placeScenes()
	s.source = s.cluster(t, "source")

	return s
}

// placeScenes sets the name of each scene and the directory of its manifests.
func (s *identity) placeScenes() {
	for name, n := range s.scenes {
		n.Name = name
		if n.Dir == "" {
			n.Dir = name
		}
		n.Dir = filepath.Join(s.dir, n.Dir)
	}
}

// cluster starts a cluster that has Velero alone and the platform.
func (s *identity) cluster(t *testing.T, name string) *stack.Cluster {
	t.Helper()
	c, err := stack.NewCluster(t.Context(), s.host, stack.Options{
		Name: name, Crossplane: s.version, Gate: true, VeleroArgs: oftener, Clocks: s.clocks[name],
		// Otherwise a create that hangs is given up after a minute, and a create whose result is
		// unknown is tried again after half a minute.
		ProviderArgs: slices.Concat(s.provider, []string{"--timeout", "10m", "--creation-grace-period", "1s"}),
	})
	must(t, err)
	if s.others {
		withoutPolicies(t, c, "buckets.cloud.example.org")
		s.defineKnown(t, c)
	}
	must(t, drill.Scene{Name: "identity", Dir: s.dir}.Install(t.Context(), c, ""))

	return c
}

// fill creates everything in the source and backs it up.
func (s *identity) fill(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	for _, by := range s.stalled() {
		must(t, s.cloud.Fail(ctx, api.Fault{Op: api.Create, By: by, Stall: true, Times: 1}))
	}
	_, err := s.cloud.Create(ctx, api.Bucket, "kept-observed", api.Spec{Region: "here"})
	must(t, err)
	if killed, ok := s.scenes["killed"]; ok {
		must(t, killed.Make(ctx, s.source))
		s.awaitStalled(t, "killed")
		s.awaitStarted(t, "killed")
		must(t, s.source.Kill(stack.CloudProvider))
		must(t, s.source.Start(ctx, stack.CloudProvider))
	}
	for _, name := range slices.Sorted(maps.Keys(s.scenes)) {
		if name != "killed" {
			must(t, s.scenes[name].Make(ctx, s.source))
		}
	}
	must(t, s.source.RestartVelero(ctx))
	for _, name := range slices.Sorted(maps.Keys(s.scenes)) {
		n := s.scenes[name]
		switch name {
		case "killed":
			t.Run("ProviderKilledAlone", func(t *testing.T) { s.testMadeTwice(t) })
		case "pending", "flight":
			s.awaitStalled(t, name)
		default:
			must(t, n.AwaitReady(ctx, s.source))
		}
		if name == "flight" {
			s.awaitSibling(t)
		}
		n.picture, err = n.Picture(ctx, s.source)
		must(t, err)
		n.ledger, err = n.Ledger(ctx, s.cloud)
		must(t, err)
	}
	if s.others {
		s.fillKnown(t)
	}
}

// awaitSibling waits until all but the create that hangs is done.
func (s *identity) awaitSibling(t *testing.T) {
	t.Helper()
	must(t, s.source.Wait(t.Context(), patience, "the siblings of the pending create to be Ready", func(ctx context.Context) error {
		ready := 0
		for _, u := range s.managed(ctx, t, s.source, "flight") {
			if stack.HasCondition(&u, "Ready", "True") == nil {
				ready++
			}
		}
		if ready != 1 {
			return fmt.Errorf("%d are", ready)
		}

		return nil
	}))
}

// testMadeTwice is a control: Crossplane itself does damage when its provider is killed while it
// creates something. An asynchronous kind then has two external resources. The provider refuses to
// reconcile the MR of the other kind.
func (s *identity) testMadeTwice(t *testing.T) {
	must(t, s.source.Wait(t.Context(), patience, "the killed provider's second external resource", func(ctx context.Context) error {
		if n := len(s.creates(ctx, t, 0, s.called(s.silent, "killed-00"))); n != 2 {
			return fmt.Errorf("%d were created", n)
		}
		mrs := s.managed(ctx, t, s.source, "killed")
		if len(mrs) != 2 {
			return fmt.Errorf("there are %v", names(mrs))
		}
		for _, u := range mrs {
			err := stack.HasCondition(&u, "Ready", "True")
			if u.GetKind() == s.announced {
				err = wantStuck(&u)
			}
			if err != nil {
				return err
			}
		}

		return nil
	}))
}

// wantStuck returns an error unless the provider refuses an MR whose creation may have succeeded.
func wantStuck(u *unstructured.Unstructured) error {
	err := stack.HasCondition(u, "Synced", "True")
	if err == nil || !strings.Contains(err.Error(), "cannot determine creation result") {
		return fmt.Errorf("%s %s does not report that it is stuck: %w", u.GetKind(), u.GetName(), err)
	}

	return nil
}

// backUpAll creates one backup with Velero alone, and one with the plugin.
func (s *identity) backUpAll(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	args := []string{"--include-namespaces", strings.Join(append(alone(), nameRestored, nameUnwanted, nameAlone), ",")}
	if s.version == stack.V1 {
		const some = "scene=lost or scene=pending or crossplane.io/composite in (dropped-00,uninformed-00,old-00)"
		args = []string{"--include-cluster-resources=true", "--or-selector", some}
	}
	backupWith(t, s.source, "alone", args...)
	must(t, s.source.UsePlugin(ctx, true))
	scenes := slices.DeleteFunc(slices.Sorted(maps.Keys(s.scenes)), func(name string) bool { return slices.Contains(alone(), name) })
	if s.version != stack.V1 {
		scenes = append(scenes, nameBackedUp)
	}
	backupWith(t, s.source, "all", "--include-namespaces", strings.Join(scenes, ","))
	logs, err := s.source.Velero(ctx, "backup", "logs", "all")
	must(t, err)
	t.Run("BackupWarns", func(t *testing.T) { s.testBackupWarns(t, problems(logs)) })
}

// testBackupWarns expects a warning for each MR whose identity is not in the backup.
func (s *identity) testBackupWarns(t *testing.T, logs string) {
	for name, n := range s.scenes {
		if slices.Contains(alone(), name) {
			continue
		}
		for _, u := range s.managed(t.Context(), t, s.source, name) {
			message := `msg="` + u.GetKind() + " " + strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/") + " "
			if unsafe := stack.HasCondition(&u, "Synced", "True") != nil || u.GetAnnotations()[externalName] == "" || isUnfound(&u); unsafe {
				wantMessage(t, "the log's problems of the backup", logs, "level=warning", message)
			} else if linesWith(logs, message) > 0 {
				t.Errorf("%s The backup warns of %s %s, which is safe:\n%s", n.reason, u.GetKind(), u.GetName(), logs)
			}
		}
	}
	if s.version != stack.V1 && s.program == stack.CloudProvider {
		wantMessage(t, "the log's problems of the backup", logs, "level=warning", "VPC known/lost ", "as is known of its kind from provider-upjet-aws v")
		wantMessage(t, "the log's problems of the backup", logs, "level=warning", "Policy known/lost ", "the plugin has no rule for the kind", "[IdentityMissing]")
	}
}

func (s *identity) restoreAlone(t *testing.T) {
	t.Helper()
	args := []string{"--exclude-namespaces", "old," + nameRestored + "," + nameUnwanted, clusterResources + "=true"}
	if s.version == stack.V1 {
		args = []string{"--selector", "crossplane.io/composite notin (old-00)", clusterResources + "=true"}
	}
	s.startRestore(t, "alone", "alone", args...)
	s.awaitCompleted(t, "alone")
	s.awaitLeftOut(t)
}

// awaitLeftOut waits until Crossplane deletes the resources that a function leaves out after a
// restore by Velero alone. The provider is down, so no object has a status at the first reconcile.
func (s *identity) awaitLeftOut(t *testing.T) {
	t.Helper()
	s.eventually(t, "Crossplane to delete the resources that the function leaves out", func(ctx context.Context) error {
		for scene, want := range s.leftOut() {
			if given := s.givenUp(ctx, t, scene); len(given) != want {
				return fmt.Errorf("%d of %d of %s are being deleted: %v", len(given), want, scene, names(given))
			}
		}

		return nil
	})
}

// restoreAll restores the scenes, the safe ones in one restore, and waits until all items exist.
func (s *identity) restoreAll(t *testing.T) {
	t.Helper()
	s.startRestore(t, "sound", "all", "--include-namespaces", "proven,gated,kept")
	kind := "Network.cloud.example.org"
	s.startRestore(t, "chosen", "all", "--include-namespaces", "chosen", "--annotations", "velero.crossplane.io/external-name-from-id="+kind)
	s.startRestore(t, "first", "all", "--include-namespaces", "first", "--annotations", observeFirst)
	s.startRestore(t, "flight", "all", "--include-namespaces", "flight")
	s.startRestore(t, "awaited", "all", "--include-namespaces", "awaited", "--exclude-resources", "environmentconfigs.apiextensions.crossplane.io")
	old := []string{"--include-namespaces", "old"}
	if s.version == stack.V1 {
		old = []string{"--selector", "crossplane.io/composite=old-00", clusterResources + "=true"}
	}
	s.startRestore(t, "old", "alone", old...)
	restores := []string{"sound", "chosen", "first", "flight", "awaited", "old"}
	if s.version != stack.V1 {
		restores = append(restores, s.restoreRarer(t)...)
		s.startRestore(t, "forsaken", "all", "--include-namespaces", "forsaken", "--annotations", observeFirst)
		s.startRestore(t, "heedless", "all", "--include-namespaces", "heedless")
		s.startRestore(t, nameBackedUp, "all", "--include-namespaces", nameBackedUp, "--item-operation-timeout", "30s")
		s.startRestore(t, nameRestored, "alone", "--include-namespaces", nameRestored, "--item-operation-timeout", "30s")
		s.startRestore(t, nameUnwanted, "alone", "--include-namespaces", nameUnwanted, "--item-operation-timeout", "30s", "--annotations",
			"velero.crossplane.io/external-name-from-id=none")
		restores = append(restores, nameBackedUp, nameRestored, nameUnwanted, "forsaken", "heedless")
	}
	for _, r := range restores {
		must(t, drill.AwaitOperations(t.Context(), s.target, r))
	}
}

// startRestore waits until the target knows the backup, and starts to restore it.
func (s *identity) startRestore(t *testing.T, restore, backup string, args ...string) {
	t.Helper()
	must(t, drill.Platform{}.StartRestore(t.Context(), s.target, restore, backup, append([]string{"--item-operation-timeout", "5m"}, args...)...))
}
