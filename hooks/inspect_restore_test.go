package hooks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/cmd/util/flag"
)

// manifestOf writes a file with the manifest of a Restore.
func manifestOf(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "restore.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	return file
}

func TestInspectPrepare(t *testing.T) {
	const manifest = `
apiVersion: velero.io/v1
kind: Restore
metadata:
  name: team-a
  namespace: elsewhere
  annotations: {velero.crossplane.io/hold: all}
spec:
  backupName: nightly
  includedNamespaces: [team-a]
  namespaceMapping: {a: b}
`
	cases := map[string]struct {
		reason   string
		manifest string
		set      func(i *inspect)
		want     velerov1.RestoreSpec
		err      string
	}{
		"Everything": {reason: "Without a Restore, everything is restored."},
		"Manifest": {
			reason: "The Restore of the file applies.", manifest: manifest,
			want: velerov1.RestoreSpec{BackupName: "nightly", IncludedNamespaces: []string{"team-a"}, NamespaceMapping: map[string]string{"a": "b"}},
		},
		"Mappings": {
			reason: "Flags are added.", manifest: manifest, set: func(i *inspect) { _ = i.mappings.Set("c:d") },
			want: velerov1.RestoreSpec{BackupName: "nightly", IncludedNamespaces: []string{"team-a"}, NamespaceMapping: map[string]string{"a": "b", "c": "d"}},
		},
		"Misspelled": {
			reason: "A misspelled filter would select everything.", manifest: strings.Replace(manifest, "includedNamespaces", "includeNamespaces", 1),
			err: `unknown field "spec.includeNamespaces"`,
		},
		"Twice": {reason: "Of a field that is there twice one would be ignored.", manifest: manifest + "  backupName: weekly\n", err: "backupName"},
		"Kind":  {reason: "Another kind has other fields.", manifest: strings.Replace(manifest, "Restore", "Backup", 1), err: "no Restore"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			i := &inspect{options: &options{velero: "velero"}, mappings: flag.NewMap().WithEntryDelimiter(',').WithKeyValueDelimiter(':')}
			if tc.manifest != "" {
				i.manifest = manifestOf(t, tc.manifest)
			}
			if tc.set != nil {
				tc.set(i)
			}
			err := i.prepare()
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s want %q, got %v", tc.reason, tc.err, err)
				}

				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, i.restore.Spec); diff != "" || i.restore.Namespace != "velero" {
				t.Errorf("%s the Restore %s/%s -want, +got:\n%s", tc.reason, i.restore.Namespace, i.restore.Name, diff)
			}
			if tc.manifest != "" && i.restore.Annotations["velero.crossplane.io/hold"] != "all" {
				t.Error("the annotations have settings")
			}
		})
	}
}

func TestInspectManifestUnreadable(t *testing.T) {
	got := command(t, nil, "inspect", "backup.tar.gz", "--against", "--restore", filepath.Join(t.TempDir(), "none.yaml"))
	if got.code != ExitFailed || !strings.Contains(got.err, "cannot read the Restore") {
		t.Errorf("a file that is not there is an error, got %+v", got)
	}
}
