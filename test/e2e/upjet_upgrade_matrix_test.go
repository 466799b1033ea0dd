//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestMatrixUpjetConversionV1(t *testing.T) { testUpjetConversion(t, stack.V1, "v1.20") }

func TestMatrixUpjetConversionV2(t *testing.T) { testUpjetConversion(t, stack.V2, "v2") }

// testUpjetConversion backs a cluster up whose provider knows only the first version of a kind. It
// restores it into one whose provider stores the second version and migrates stored objects while
// they are held: it writes each MR with an empty patch (upjet pkg/config/crds_migrator.go, after
// v2.2.0).
func testUpjetConversion(t *testing.T, version stack.Version, dir string) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	dir = filepath.Join("testdata", dir, "upjet", "volume")
	alone := &shape{reason: "After a restore by Velero alone, upjet creates again what its status would find.", Scene: drill.Scene{Name: "alone", Dir: dir}}
	with := &shape{reason: "A migrated MR must stay held and unchanged.", Scene: drill.Scene{Name: "upgraded", Dir: dir}}
	s := newUpjet(t, version)
	s.source = s.upjet(t, "source", nil)
	for _, n := range []*shape{alone, with} {
		if version.IsV1() {
			n.BackupArgs = selected(n.Name)
		}
		must(t, n.Make(ctx, s.source))
		must(t, n.AwaitReady(ctx, s.source))
	}
	must(t, s.source.Kill(stack.UpjetProvider))
	s.changeVersions(t, s.source, func(v map[string]any) { v["served"] = v["name"] == "v1beta1" })
	must(t, s.source.RestartVelero(ctx))
	s.storeVolume(t, alone)
	must(t, s.source.UsePlugin(ctx, true))
	s.storeVolume(t, with)
	must(t, s.source.Destroy())

	s.target = s.upjet(t, "target", nil)
	s.changeVersions(t, s.target, func(v map[string]any) { v["storage"] = v["name"] == "v1beta2" })
	must(t, s.target.RestartVelero(ctx))
	t.Run("VeleroAlone", func(t *testing.T) {
		must(t, alone.StartRestore(t.Context(), s.target))
		s.awaitCompleted(t, alone.Name)
		s.testMade(t, alone, "volume")
	})
	must(t, s.target.UsePlugin(ctx, true))
	s.refuse(t, with, http.StatusTooManyRequests)
	must(t, with.StartRestore(ctx, s.target))
	t.Run("Migrated", func(t *testing.T) { s.testMigrated(t, with) })
	must(t, s.cloud.Recover(ctx))
	t.Run("Restored", func(t *testing.T) { s.testVolume(t, with) })
}

func (s *suite) storeVolume(t *testing.T, n *shape) {
	t.Helper()
	var err error
	n.ledger, err = n.Ledger(t.Context(), s.cloud)
	must(t, err)
	must(t, n.BackUp(t.Context(), s.source))
}

// changeVersions changes each version of the kind in a cluster.
func (s *suite) changeVersions(t *testing.T, c *stack.Cluster, change func(version map[string]any)) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.REST())
	must(t, err)
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	must(t, c.Wait(t.Context(), patience, "the versions to be changed", func(ctx context.Context) error {
		crd, err := crds.Get(ctx, "volumes."+s.upjetGroup(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, v := range versions {
			change(v.(map[string]any)) //nolint:forcetypeassert // The API server guarantees it.
		}
		if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
			return err
		}
		_, err = crds.Update(ctx, crd, metav1.UpdateOptions{})

		return err
	}))
}

func (s *suite) volume(ctx context.Context, n *shape) (*unstructured.Unstructured, error) {
	volumes, err := list(ctx, s.target, schema.GroupVersionKind{Group: s.upjetGroup(), Version: "v1beta2", Kind: "Volume"}, n.Name, "scene="+n.Name)
	if err != nil || len(volumes) != 1 {
		return nil, errors.Join(err, fmt.Errorf("there are %d volumes", len(volumes)))
	}

	return &volumes[0], nil
}

// testMigrated writes the MR as upjet's migrator does, while the cloud refuses all calls, and
// expects it to be held after that.
func (s *suite) testMigrated(t *testing.T, n *shape) {
	s.eventually(t, "the cloud to refuse the volume", func(ctx context.Context) error {
		u, err := s.volume(ctx, n)
		if err == nil && !strings.Contains(message(u, "Synced"), "429") {
			err = fmt.Errorf("it reports %q", message(u, "Synced"))
		}

		return err
	})
	ctx := t.Context()
	before, err := s.volume(ctx, n)
	must(t, err)
	must(t, drill.Patch(ctx, s.target, before, map[string]any{}))
	after, err := s.volume(ctx, n)
	must(t, err)
	if !drill.Held(after) || !slices.Equal(policies(after), []any{"Observe"}) || after.GetUID() != before.GetUID() {
		t.Errorf("%s It has the policies %v, annotations %v", n.reason, policies(after), after.GetAnnotations())
	}
}

func (s *suite) testVolume(t *testing.T, n *shape) {
	s.awaitCompleted(t, n.Name)
	s.eventually(t, "the volume to be Ready", func(ctx context.Context) error {
		u, err := s.volume(ctx, n)
		if err != nil {
			return err
		}

		return stack.HasCondition(u, "Ready", "True")
	})
	ctx := t.Context()
	u, err := s.volume(ctx, n)
	must(t, err)
	cidr, _, _ := unstructured.NestedString(u.Object, "spec", "forProvider", "cidr")
	if cidr != "10.1.0.0/16" || drill.Held(u) || !slices.Equal(policies(u), []any{"*"}) {
		t.Errorf("%s It has the cidr %q, the policies %v, annotations %v", n.reason, cidr, policies(u), u.GetAnnotations())
	}
	changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
	must(t, err)
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
}
