//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
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
	s := newStageOf(t, stack.Options{Crossplane: version, Plugin: true, UpjetProvider: true})
	group := "upjet.m.example.org"
	n := &shape{reason: "A migrated MR must stay held and unchanged.", Scene: drill.Scene{Name: "upgraded", Dir: filepath.Join("testdata", dir, "upjet", "volume")}}
	if version.IsV1() {
		group, n.BackupArgs = "upjet.example.org", selected(n.Name)
	}
	cluster := func(name string) *stack.Cluster {
		t.Helper()
		c, err := stack.NewCluster(ctx, s.host, stack.Options{Name: name, Crossplane: version, Plugin: true, UpjetProvider: true, VeleroArgs: oftener})
		must(t, err)

		return c
	}
	volume := func(ctx context.Context) (*unstructured.Unstructured, error) {
		return get(ctx, s.target, schema.GroupVersionKind{Group: group, Version: "v1beta2", Kind: "Volume"}, n.Name, n.Name+"-volume")
	}
	s.source = cluster("source")
	must(t, n.Make(ctx, s.source))
	must(t, n.AwaitReady(ctx, s.source))
	must(t, s.source.Kill(stack.UpjetProvider))
	changeVersions(t, s.source, group, func(v map[string]any) { v["served"] = v["name"] == "v1beta1" })
	must(t, s.source.RestartVelero(ctx))
	var err error
	n.ledger, err = n.Ledger(ctx, s.cloud)
	must(t, err)
	must(t, n.BackUp(ctx, s.source))
	must(t, s.source.Destroy())

	s.target = cluster("target")
	changeVersions(t, s.target, group, func(v map[string]any) { v["storage"] = v["name"] == "v1beta2" })
	must(t, s.target.RestartVelero(ctx))
	must(t, s.cloud.Fail(ctx, api.Fault{By: n.Name + "-", Status: 429, Times: always}))
	must(t, n.StartRestore(ctx, s.target))
	s.eventually(t, "the cloud to refuse the volume", func(ctx context.Context) error {
		u, err := volume(ctx)
		if err == nil && !strings.Contains(message(u, "Synced"), "429") {
			err = errors.New(message(u, "Synced"))
		}

		return err
	})
	before, err := volume(ctx)
	must(t, err)
	must(t, drill.Patch(ctx, s.target, before, map[string]any{}))
	after, err := volume(ctx)
	must(t, err)
	if !drill.Held(after) || !onlyObserves(after) || after.GetUID() != before.GetUID() {
		t.Errorf("%s It has the policies %v, annotations %v", n.reason, policies(after), after.GetAnnotations())
	}
	must(t, s.cloud.Recover(ctx))
	s.awaitCompleted(t, n.Name)
	s.eventually(t, "the volume to be as it was", func(ctx context.Context) error {
		u, err := volume(ctx)
		if err != nil {
			return err
		}
		cidr, _, _ := unstructured.NestedString(u.Object, "spec", "forProvider", "cidr")
		if cidr != "10.1.0.0/16" || drill.Held(u) || fmt.Sprint(policies(u)) != "[*]" {
			err = fmt.Errorf("it has the cidr %q, the policies %v, annotations %v", cidr, policies(u), u.GetAnnotations())
		}

		return errors.Join(err, stack.HasCondition(u, "Ready", "True"))
	})
	changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
	must(t, err)
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
}

// changeVersions changes each version of the volumes' CRD in a cluster.
func changeVersions(t *testing.T, c *stack.Cluster, group string, change func(version map[string]any)) {
	t.Helper()
	crd, err := get(t.Context(), c, crdKind, "", "volumes."+group)
	must(t, err)
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		change(v.(map[string]any)) //nolint:forcetypeassert // The API server guarantees it.
	}
	must(t, drill.Patch(t.Context(), c, crd, map[string]any{"spec": map[string]any{"versions": versions}}))
}
