package crds_test

import (
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/crds"
)

func TestFS(t *testing.T) {
	want := []string{
		"cloud.example.org_buckets.yaml",
		"cloud.example.org_databases.yaml",
		"cloud.example.org_networks.yaml",
		"cloud.m.example.org_buckets.yaml",
		"cloud.m.example.org_databases.yaml",
		"cloud.m.example.org_networks.yaml",
	}

	got, err := fs.Glob(crds.FS(), "*.yaml")
	if err != nil {
		t.Fatalf("fs.Glob(...): %v", err)
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("\nThere should be a CRD of each kind in each scope.\nfs.Glob(...): -want, +got:\n%s", diff)
	}
}
