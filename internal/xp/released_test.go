package xp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Each later version reads the notes of every released version (docs/dev/architecture.md).
func TestReleasedNotes(t *testing.T) {
	versions, err := filepath.Glob("testdata/released/v*.json")
	if err != nil || len(versions) == 0 {
		t.Fatalf("there are no released versions: %v", err)
	}
	for _, path := range versions {
		b, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(b, u); err != nil {
			t.Fatal(err)
		}
		secret := func(namespace, name string) xp.Ref {
			return xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}
		}
		network := xp.Ref{APIVersion: "cloud.example.org/v1alpha1", Kind: "Network", Namespace: "team-a", Name: "n"}
		tree, _, err := xp.RestoreFirst(u)
		if want := []string{"compositions.apiextensions.crossplane.io//orders", "secrets/team-a/s"}; err != nil || len(tree) != 2 || tree[0].String() != want[0] ||
			tree[1].String() != want[1] {
			t.Errorf("%s: the tree is %v, %v", path, tree, err)
		}
		dangling, err := xp.UnresolvedRefs(u)
		if diff := cmp.Diff([]xp.Ref{network}, dangling); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", path, err, diff)
		}
		well := xp.SavedConditions(u, []xp.Ref{{APIVersion: network.APIVersion, Kind: network.Kind, Name: "w"}})
		if diff := cmp.Diff([]xp.TrueConditions{"Ready,Synced"}, well); diff != "" {
			t.Errorf("%s:\n%s", path, diff)
		}
		input, known := xp.Inputs(u)[secret("infra", "password")]
		if want := (xp.Input{Ref: secret("infra", "password"), Exists: true, Stored: true}); !known || input != want {
			t.Errorf("%s: its provider reads %+v, want %+v", path, input, want)
		}
		if published, doubted := xp.HasFlag(u, xp.FieldPublished), xp.HasFlag(u, xp.FieldDoubted); !published || !doubted || xp.IdentityOf(u) != xp.Known {
			t.Errorf("%s: published %t, doubted %t, %s", path, published, doubted, xp.IdentityOf(u))
		}
		if err := xp.CheckFormat(u); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		xp.StripBackupMetadata(u)
		if metadata, _, _ := unstructured.NestedMap(u.Object, "metadata"); len(metadata) != 1 {
			t.Errorf("%s: metadata has unknown fields: %v", path, metadata)
		}
	}
}
