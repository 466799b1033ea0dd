//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cases"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestMatrixUpjetUIDsV1(t *testing.T) { testUpjetUIDs(t, stack.V1, "v1.20") }

func TestMatrixUpjetUIDsV2(t *testing.T) { testUpjetUIDs(t, stack.V2, "v2") }

// testUpjetUIDs loses a cluster with keys that the cloud returned once. They are in Secrets that are
// named from the UIDs of XRs.
func testUpjetUIDs(t *testing.T, version stack.Version, dir string) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	manifests := filepath.Join("testdata", dir, "upjet", "uids")
	lost := &shape{reason: "Velero alone leaves the keys under names that nobody reads any more.", Scene: drill.Scene{Name: "keyless", Dir: manifests, Count: 2}}
	kept := &shape{
		reason: "The keys must be in the Secrets that Crossplane and upjet read.", Scene: drill.Scene{Name: "keys", Dir: manifests, Count: 2},
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
	before, err := s.stateOf(ctx, s.source, kept.Scene)
	must(t, err)
	keys, err := s.keys(ctx, s.source, kept)
	must(t, err)
	old, err := s.keys(ctx, s.source, lost)
	must(t, err)
	if len(keys) != kept.Count || len(old) != lost.Count {
		t.Fatalf("the cloud has returned %d and %d keys", len(keys), len(old))
	}
	must(t, s.source.Destroy())

	s.target = s.upjet(t, "target", both)
	must(t, s.target.RestartVelero(ctx))
	t.Run("VeleroAlone", func(t *testing.T) {
		must(t, lost.StartRestore(t.Context(), s.target))
		s.awaitCompleted(t, lost.Name)
		s.eventually(t, "the keys to be missing in the Secrets that upjet reads (the control)", func(ctx context.Context) error {
			now, err := s.keys(ctx, s.target, lost)
			for key := range now {
				if old[key] {
					err = errors.Join(err, errors.New("upjet reads a key of the backup"))
				}
			}

			return err
		})
	})
	must(t, s.target.UsePlugin(ctx, true))
	must(t, kept.StartRestore(ctx, s.target))
	t.Run(kept.Name, func(t *testing.T) {
		ctx := t.Context()
		s.awaitCompleted(t, kept.Name)
		must(t, kept.AwaitReady(ctx, s.target))
		after, err := s.keys(ctx, s.target, kept)
		must(t, err)
		if !maps.Equal(keys, after) {
			t.Errorf("%s Of %d keys there are %d, which are others or fewer.", kept.reason, len(keys), len(after))
		}
		now, err := kept.Ledger(ctx, s.cloud)
		must(t, err)
		s.eventually(t, "upjet to read each MR once more", func(ctx context.Context) error { return s.readSince(ctx, kept, now.Seq) })
		changes, err := kept.Changes(ctx, s.cloud, kept.ledger.Seq, kept.ledger.External)
		must(t, err)
		restored, err := s.stateOf(ctx, s.target, kept.Scene)
		must(t, err)
		w := &world{
			Case:   &cases.Case{Expect: cases.Expectation{OldUIDs: version.IsV1(), Changed: map[string][]string{"Secret *": {"Managers"}}}},
			before: before, after: restored,
		}
		if err := w.differs(); err != nil || len(changes) > 0 {
			t.Errorf("%s\n%v\nIn the cloud: %v", kept.reason, err, changes)
		}
	})
}

// keys returns the keys in the Secrets that upjet and Crossplane read: those of databases that an XR
// controls. Each has a name with the UID of its live XR.
func (s *suite) keys(ctx context.Context, c *stack.Cluster, n *shape) (map[string]bool, error) {
	mrs, err := s.upjets(ctx, c, n)
	if err != nil {
		return nil, err
	}
	secrets, err := list(ctx, c, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, n.Name, "")
	if err != nil {
		return nil, err
	}
	named := map[string]string{}
	for _, secret := range secrets {
		data, _ := secret.Object["data"].(map[string]any)
		named[secret.GetName()], _ = data["attribute.connection_password"].(string)
	}
	keys, controlled := map[string]bool{}, 0
	for _, mr := range mrs {
		owners := mr.GetOwnerReferences()
		if len(owners) == 0 {
			continue // Velero alone leaves some of Crossplane v1 behind.
		}
		controlled++
		name, _, _ := unstructured.NestedString(mr.Object, "spec", "writeConnectionSecretToRef", "name")
		key, exists := named[name]
		if name != string(owners[0].UID)+"-key" || !exists {
			return nil, fmt.Errorf("%s of %v publishes in %s, which exists: %v", mr.GetName(), owners, name, exists)
		}
		if key != "" {
			keys[key] = true
		}
	}
	if controlled != n.Count {
		return nil, fmt.Errorf("of %v XRs control %d", names(mrs), controlled)
	}

	return keys, nil
}
