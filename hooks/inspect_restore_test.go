package hooks

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
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
		code     int
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
			err: `unknown field "spec.includeNamespaces"`, code: ExitFailed,
		},
		"Twice": {reason: "Of a field that is there twice one would be ignored.", manifest: manifest + "  backupName: weekly\n", err: "backupName", code: ExitFailed},
		"Kind":  {reason: "Another kind has other fields.", manifest: strings.Replace(manifest, "Restore", "Backup", 1), err: "no Restore", code: ExitFailed},
		"NoCluster": {
			reason: "A flag without effect is refused.", manifest: manifest, set: func(i *inspect) { i.against = false }, err: "--against", code: ExitUsage,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &options{velero: "velero"}
			i := newInspection(o)
			i.against = true
			if tc.manifest != "" {
				i.manifest = manifestOf(t, tc.manifest)
			}
			if tc.set != nil {
				tc.set(i)
			}
			err := failed(i.prepare())
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || codeOf(err) != tc.code {
					t.Errorf("%s want exit %d with %q, got %d: %v", tc.reason, tc.code, tc.err, codeOf(err), err)
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

func TestOfSelected(t *testing.T) {
	in, out := xp.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "in"}, xp.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "out"}
	results := []report.ItemResult{
		{Item: in, Outcome: report.Outcome{Action: report.Create}},
		{Item: out, Outcome: report.OutcomeOf(report.Skip, reason.NotSelected.Messagef("no"))},
	}
	problems := ofSelected([]report.Problem{{Object: in}, {Object: out}}, results)
	if diff := cmp.Diff([]report.Problem{{Object: in}}, problems); diff != "" {
		t.Errorf("only problems of what comes back count: -want, +got:\n%s", diff)
	}
}

func TestInspectManifestUnreadable(t *testing.T) {
	var stderr bytes.Buffer
	code := Run(context.Background(), []string{"inspect", "backup.tar.gz", "--against", "--restore", filepath.Join(t.TempDir(), "none.yaml")},
		Streams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, Err: &stderr})
	if code != ExitFailed || !strings.Contains(stderr.String(), "cannot read the Restore") {
		t.Errorf("a file that is not there is an error, got %d: %s", code, stderr.String())
	}
}
