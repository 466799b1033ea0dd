//go:build matrix

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// TestMatrixIdentityRarerV1 has the scenes that need other asynchronous kinds than TestMatrixIdentityV1.
func TestMatrixIdentityRarerV1(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	made := ownMaker(stack.V1)
	made.announced = "Network"
	s := newIdentity(t, &identity{
		suite: &suite{version: stack.V1}, maker: made, dir: filepath.Join("testdata", "v1.20", "identity-rarer"), scenes: rarerScenes(),
		others:   true,
		provider: []string{"--async-arn", "Database.cloud.example.org", "--unruled", "Bucket.cloud.example.org"},
	})
	s.fill(t)
	known := []string{"--include-cluster-resources=true", "--selector", "scene in (" + nameRestored + "," + nameUnwanted + "," + nameAlone + ")"}
	must(t, drill.Scene{Name: "alone", BackupArgs: known}.BackUp(ctx, s.source))
	must(t, s.source.UsePlugin(ctx, true))
	backupWith(t, s.source, "all", "--include-namespaces", "arn,gone,unruled,trusted,killed")
	backupWith(t, s.source, nameBackedUp, "--include-cluster-resources=true", "--selector", "scene="+nameBackedUp)
	must(t, s.source.Destroy())
	s.loseExternal(t)
	s.lost = s.seq(t)

	s.target = s.cluster(t, "target")
	must(t, s.target.Stop(stack.CloudProvider))
	must(t, s.target.RestartVelero(ctx))
	s.startRestore(t, "alone", "alone", "--selector", "scene="+nameAlone)
	s.awaitCompleted(t, "alone")
	must(t, s.target.UsePlugin(ctx, true))
	restores := append(s.restoreRarer(t), nameBackedUp, nameRestored, nameUnwanted)
	s.startRestore(t, nameBackedUp, nameBackedUp, "--item-operation-timeout", "30s")
	s.startRestore(t, nameRestored, "alone", "--selector", "scene="+nameRestored, "--item-operation-timeout", "30s")
	s.startRestore(t, nameUnwanted, "alone", "--selector", "scene="+nameUnwanted, "--item-operation-timeout", "30s", "--annotations",
		"velero.crossplane.io/external-name-from-id=none")
	for _, r := range restores {
		must(t, drill.AwaitOperations(ctx, s.target, r))
	}
	must(t, s.target.Start(ctx, stack.CloudProvider))
	t.Run("VeleroAlone", func(t *testing.T) {
		t.Run("Known", func(t *testing.T) { s.testAloneKnown(t) })
	})
	t.Run("Known", func(t *testing.T) { s.testKnown(t) })
	t.Run("KnownUnwanted", func(t *testing.T) { s.testKnownUnwanted(t) })
	t.Run("NotTheName", func(t *testing.T) { s.testNotTheName(t, "Database", "arn:cloud:database:") })
	t.Run("ObservedGone", func(t *testing.T) { s.testObservedGone(t, "Network") })
	t.Run("NotObservable", func(t *testing.T) { s.testNotObservable(t) })
	t.Run("ProviderKilled", func(t *testing.T) { s.testProviderKilled(t) })
}
