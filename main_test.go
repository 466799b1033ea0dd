package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/hooks"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// TestExampleBackups inspects the example backups, as a new user of this repository does.
func TestExampleBackups(t *testing.T) {
	files, err := filepath.Glob("example/backup/*.tar.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are %d backups: %v", len(files), err)
	}
	const small = 64 << 10
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if info, err := os.Stat(file); err != nil || info.Size() > small {
				t.Errorf("every clone of the repository has the file, so it must be small; it is %v (%v)", info, err)
			}
			var out, stderr bytes.Buffer
			code := hooks.Run(t.Context(), []string{"inspect", file, "-o", "json"}, hooks.Program{Out: &out, Err: &stderr, DryRunner: dryRun})
			var r report.Report
			if err := json.Unmarshal(out.Bytes(), &r); err != nil || code != hooks.ExitProblems {
				t.Fatalf("the command ended with %d: %v %s", code, err, stderr.String())
			}
			for _, c := range []reason.Code{reason.CreatePending, reason.IdentityMissing, reason.Dangling, reason.RevisionMissing} {
				if !slices.ContainsFunc(r.Problems, func(p report.Problem) bool { return p.Code == c }) {
					t.Errorf("the report lacks %s", c)
				}
			}
			if len(r.Order) == 0 || len(r.Versions) == 0 || len(r.Trees) == 0 {
				t.Errorf("the report lacks the order, versions or trees: %+v", r)
			}
			out.Reset()
			if code := hooks.Run(t.Context(), []string{"inspect", file}, hooks.Program{Out: &out, Err: &stderr, DryRunner: dryRun}); code != hooks.ExitProblems || out.Len() == 0 {
				t.Errorf("the command for a text report ended with %d", code)
			}
		})
	}
}
