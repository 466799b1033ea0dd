package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// The build of a release sets these (-ldflags "-X main.release=v1.2.3 -X main.commit=…"). Other
// builds have debug.BuildInfo.
var release, commit string //nolint:gochecknoglobals // The linker sets nothing else.

// version returns the version, commit, Go version and platform of this program, in one line.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}

	return versionOf(release, commit, info)
}

func versionOf(release, commit string, info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	revision := settings["vcs.revision"]
	if settings["vcs.modified"] == "true" {
		revision += "-dirty"
	}
	module := info.Main.Version
	if module == "(devel)" {
		module = ""
	}

	return fmt.Sprintf("%s (commit %s, %s, %s/%s)",
		cmp.Or(release, module, "v0.0.0-dev"), cmp.Or(commit, revision, "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
