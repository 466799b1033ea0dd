//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestMatrixUpjetUIDsV1(t *testing.T) { testUpjetUIDs(t, stack.V1, "v1.20", "XKey") }

func TestMatrixUpjetUIDsV2(t *testing.T) { testUpjetUIDs(t, stack.V2, "v2", "Key") }

// testUpjetUIDs loses a cluster with keys that the cloud returned once. They are in Secrets that are
// named from the UIDs of XRs.
func testUpjetUIDs(t *testing.T, version stack.Version, dir, kind string) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	of := &uids{kinds: []string{kind}}
	manifests := filepath.Join("testdata", dir, "upjet", "uids")
	lost := &shape{reason: "Velero alone leaves the keys under names that nobody reads any more.", Scene: drill.Scene{Name: "keyless", Dir: manifests, Count: 2}}
	kept := &shape{
		reason: "The keys must be in the Secrets that Crossplane and upjet read.", Scene: drill.Scene{Name: "keys", Dir: manifests, Count: 2}, check: of.wantRenamed,
	}
	if version.IsV1() { // Velero alone would back up no more than the claims.
		lost.BackupArgs = []string{
			"--include-namespaces", lost.Name, "--include-cluster-resources=true", "--include-resources", "secrets,keys.keyless.example.org,xkeys.keyless.example.org," +
				"databases.upjet.example.org,compositions.apiextensions.crossplane.io,compositionrevisions.apiextensions.crossplane.io",
		}
	}
	both := []*shape{lost, kept}
	s := newUpjet(t, version)
	s.source = s.upjet(t, "source", both)
	must(t, lost.Make(ctx, s.source))
	must(t, s.source.RestartVelero(ctx))
	s.storeUpjet(t, lost)
	must(t, s.source.UsePlugin(ctx, true))
	must(t, kept.Make(ctx, s.source))
	s.storeUpjet(t, kept)
	must(t, of.remember(ctx, s.source, kept.Scene))
	for _, n := range both {
		must(t, s.keys(ctx, s.source, n, true))
	}
	must(t, s.source.Destroy())

	s.target = s.upjet(t, "target", both)
	must(t, s.target.RestartVelero(ctx))
	t.Run("VeleroAlone", func(t *testing.T) {
		must(t, lost.StartRestore(t.Context(), s.target))
		s.awaitCompleted(t, lost.Name)
		s.eventually(t, "the keys to be missing in the Secrets that upjet reads (the control)", func(ctx context.Context) error { return s.keys(ctx, s.target, lost, false) })
	})
	must(t, s.target.UsePlugin(ctx, true))
	must(t, kept.StartRestore(ctx, s.target))
	t.Run(kept.Name, func(t *testing.T) {
		ctx := t.Context()
		s.awaitCompleted(t, kept.Name)
		must(t, kept.AwaitReady(ctx, s.target))
		must(t, s.keys(ctx, s.target, kept, true))
		now, err := kept.Ledger(ctx, s.cloud)
		must(t, err)
		s.eventually(t, "upjet to read each MR once more", func(ctx context.Context) error { return s.readSince(ctx, kept, now.Seq) })
		changes, err := kept.Changes(ctx, s.cloud, kept.ledger.Seq, kept.ledger.External)
		must(t, err)
		after, err := kept.Picture(ctx, s.target)
		must(t, err)
		kept.check(t, s, kept, after, changes)
	})
}

// keys returns an error unless the Secret of each database, under the name that the database has for
// it now with the UID of its live XR, exists and has the key, or has none.
func (s *suite) keys(ctx context.Context, c *stack.Cluster, n *shape, present bool) error {
	mrs, err := s.upjets(ctx, c, n)
	if err != nil {
		return err
	}
	var errs []error
	if len(mrs) != n.Count {
		errs = append(errs, fmt.Errorf("there are %v", names(mrs)))
	}
	secrets, err := list(ctx, c, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, n.Name, "")
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for _, secret := range secrets {
		data, _ := secret.Object["data"].(map[string]any)
		key, _ := data["attribute.connection_password"].(string)
		has[secret.GetName()] = key != ""
	}
	for _, mr := range mrs {
		spec, _ := mr.Object["spec"].(map[string]any)
		ref, _ := spec["writeConnectionSecretToRef"].(map[string]any)
		name, _ := ref["name"].(string)
		owners := mr.GetOwnerReferences()
		key, exists := has[name]
		if len(owners) != 1 || name != string(owners[0].UID)+"-key" || !exists || key != present {
			errs = append(errs, fmt.Errorf("%s of %v publishes in %s, which exists: %v, and has the key: %v", mr.GetName(), owners, name, exists, key))
		}
	}
	if !present && !strings.Contains(fmt.Sprint(has), ":true") {
		errs = append(errs, errors.New("the old Secrets are gone"))
	}

	return errors.Join(errs...)
}
