package restoreitem

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Each later version restores the backups of a released one: claims and XRs on hold, and each XR
// before what it composes. The backups of each version are in testdata and never change
// (docs/dev/architecture.md).
func TestReleasedBackups(t *testing.T) {
	backups, err := filepath.Glob("testdata/released/v*/*.tar.gz")
	if err != nil || len(backups) == 0 {
		t.Fatalf("want backups of released versions: %v", err)
	}
	for _, path := range backups {
		t.Run(path, func(t *testing.T) {
			f, err := os.Open(filepath.Clean(path))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			b, err := archive.Read(t.Context(), f, archive.Default())
			if err != nil {
				t.Fatal(err)
			}
			results, err := dryRunResults(t.Context(), b, &fakeDryRunCluster{cluster: &cluster{}, resources: servedAsIn(b)}, restoreOf(nil))
			if err != nil {
				t.Fatal(err)
			}
			testResults(t, b, results)
		})
	}
}

// servedAsIn serves the kinds in a backup.
func servedAsIn(b *archive.Backup) kindsFn {
	namespaced := map[schema.GroupResource]bool{}
	for _, item := range b.Items {
		namespaced[item.GroupResource] = item.Namespace != ""
	}

	return func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
		gvr, _, err := anything(gvk)

		return gvr, namespaced[gvr.GroupResource()], err
	}
}

func testResults(t *testing.T, b *archive.Backup, results []report.ItemResult) {
	t.Helper()
	held, composed := 0, 0
	came := map[xp.ID]bool{}
	for _, f := range results {
		u := b.Get(xp.Item{GroupResource: schema.ParseGroupResource(f.Resource), Namespace: f.Item.Namespace, Name: f.Item.Name})
		if u == nil {
			continue
		}
		if f.Outcome.Action == report.Refuse && !xp.IsUsage(u) { // A Usage is left behind.
			t.Errorf("%s is refused: %s", f.Item, f.Outcome.Reason)
		}
		if xp.IsComposite(u) || xp.IsClaim(u) {
			held++
			if f.Outcome.Action != report.Keep {
				t.Errorf("%s must come back on hold: %+v", f.Item, f.Outcome)
			}
		}
		if c, ok := xp.Controller(u); ok && xp.IsComposed(u) {
			composed++
			xr := xp.Ref{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: u.GetNamespace(), Name: c.Name}
			if cluster := (xp.Ref{APIVersion: c.APIVersion, Kind: c.Kind, Name: c.Name}); !came[xr.ID()] && !came[cluster.ID()] {
				t.Errorf("%s comes before its XR %s", f.Item, xr)
			}
		}
		came[f.Item.ID()] = true
	}
	if held == 0 || composed == 0 {
		t.Errorf("the backup has %d claims and XRs, and %d composed resources", held, composed)
	}
}

// Each later version continues the operations of a released one: the plugin can be upgraded during
// a restore.
func TestReleasedOperations(t *testing.T) {
	lists, err := filepath.Glob("testdata/released/v*/operations.txt")
	if err != nil || len(lists) == 0 {
		t.Fatalf("want backups of released versions: %v", err)
	}
	for _, path := range lists {
		b, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			id := strings.TrimSuffix(line, "\n")
			if noteText(id, &velero.OperationProgress{}) {
				continue
			}
			operation, note, _ := strings.Cut(id, noteAfter)
			r, err := parseOperationID(operation)
			if err != nil || operationID(r) != operation {
				t.Errorf("%s: %q is read as %s: %v", path, id, r, err)
			}
			if (note != "") != strings.Contains(id, "note: ") {
				t.Errorf("%s: %q has the note %q", path, id, note)
			}
		}
	}
}
