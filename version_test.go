package main

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/hooks"
)

func TestVersionOf(t *testing.T) {
	built := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "929283c"}
	type args struct {
		release, commit string
		info            *debug.BuildInfo
	}
	cases := map[string]struct {
		reason string
		args   args
		want   string
	}{
		"Release": {
			reason: "The linker flags set the version of a release.",
			args:   args{release: "v1.2.3", commit: "0123456", info: built("v0.0.0-2026", revision)},
			want:   "v1.2.3 (commit 0123456",
		},
		"Installed": {
			reason: "A build of go install has the module's version, and no commit.",
			args:   args{info: built("v1.2.3")},
			want:   "v1.2.3 (commit unknown",
		},
		"Checkout": {
			reason: "A build in a checkout has its commit.",
			args:   args{info: built("(devel)", revision, debug.BuildSetting{Key: "vcs.modified", Value: "false"})},
			want:   "v0.0.0-dev (commit 929283c",
		},
		"Changed": {
			reason: "The version marks a build of changed sources.",
			args:   args{info: built("(devel)", debug.BuildSetting{Key: "vcs.modified", Value: "true"}, revision)},
			want:   "v0.0.0-dev (commit 929283c-dirty",
		},
		"Unknown": {
			reason: "Without build information the version is unknown.",
			args:   args{info: &debug.BuildInfo{}},
			want:   "v0.0.0-dev (commit unknown",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := versionOf(tc.args.release, tc.args.commit, tc.args.info)
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
