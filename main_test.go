package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework"

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

func TestVeleroFlags(t *testing.T) {
	cases := map[string]struct {
		reason    string
		args      []string
		features  []string
		modifiers string
	}{
		"None":     {reason: "Velero has no features and no modifier by default.", args: []string{"--plugin-dir=/plugins", "--log-level=debug"}},
		"Apart":    {reason: "The value can be an argument of its own.", args: []string{"--features", "EnableCSI"}, features: []string{"EnableCSI"}},
		"Many":     {reason: "Commas separate features, and the flag can be repeated.", args: []string{"--features=a,b", "--features=c"}, features: []string{"a", "b", "c"}},
		"Beside":   {reason: "Other flags of Velero have no effect.", args: []string{"--namespace=velero", "--features=a", "--new=1"}, features: []string{"a"}},
		"Empty":    {reason: "A flag without a value has no effect.", args: []string{"--features="}},
		"Modifier": {reason: "The default is for each restore without a modifier of its own.", args: []string{"--default-resource-modifier-configmap=cni"}, modifiers: "cni"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			flags := pflag.NewFlagSet("plugin", pflag.ContinueOnError)
			features, modifiers := veleroFlags(flags)
			// Velero binds its own flags to the same set. A flag of the same name would keep the
			// plugin from starting.
			framework.NewServer().BindFlags(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.features, *features, cmpopts.EquateEmpty()); diff != "" || *modifiers != tc.modifiers {
				t.Errorf("%s\nmodifiers %q, features: -want, +got:\n%s", tc.reason, *modifiers, diff)
			}
		})
	}
}

func TestVersionOf(t *testing.T) {
	built := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "929283c"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	cases := map[string]struct {
		reason          string
		release, commit string
		info            *debug.BuildInfo
		want            string
	}{
		"Release":   {reason: "The linker flags set the version of a release.", release: "v1.2.3", commit: "0123456", info: built("v0.0.0-2026", revision), want: "v1.2.3 (commit 0123456"},
		"Installed": {reason: "A build of go install has the module's version, and no commit.", info: built("v1.2.3"), want: "v1.2.3 (commit unknown"},
		"Checkout":  {reason: "A build in a checkout has its commit.", info: built("(devel)", revision), want: "v0.0.0-dev (commit 929283c"},
		"Changed":   {reason: "The version marks a build of changed sources.", info: built("(devel)", modified, revision), want: "v0.0.0-dev (commit 929283c-dirty"},
		"Unknown":   {reason: "Without build information the version is unknown.", info: &debug.BuildInfo{}, want: "v0.0.0-dev (commit unknown"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := versionOf(tc.release, tc.commit, tc.info)
			want := tc.want + ", " + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestVersionFlag runs --version, as a user does for a bug report.
func TestVersionFlag(t *testing.T) {
	var out, stderr bytes.Buffer
	code := hooks.Run(t.Context(), []string{"--version"}, hooks.Program{Out: &out, Err: &stderr, Version: version()})
	if want := hooks.Name + " " + version() + "\n"; code != hooks.ExitFine || out.String() != want || strings.Count(want, "\n") != 1 {
		t.Errorf("want %q, got %d, %q and %q", want, code, out.String(), stderr.String())
	}
}
