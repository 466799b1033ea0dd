package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeGo is a "go" that writes its arguments to the file ARGUMENTS, one a line.
const fakeGo = `#!/bin/sh
for each; do printf '%s\n' "$each"; done >>"$ARGUMENTS"
`

// TestMakefile tries versions that have a meaning for a shell or make: an attacker who can push a
// tag chooses one.
func TestMakefile(t *testing.T) {
	root, program := t.TempDir(), t.TempDir()
	args, ran := filepath.Join(t.TempDir(), "arguments"), filepath.Join(t.TempDir(), "ran")
	write(t, filepath.Join(root, "Makefile"), read(t, "../../Makefile"))
	write(t, filepath.Join(root, "test", "go.mod"), "module test\n")
	if out, err := exec.CommandContext(t.Context(), "git", "init", "--quiet", root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	write(t, filepath.Join(program, "go"), fakeGo)
	if err := os.Chmod(filepath.Join(program, "go"), 0o755); err != nil { //nolint:gosec // It is a program.
		t.Fatal(err)
	}
	const hostile = "v1;touch RAN;`touch RAN`$$(touch RAN)$(shell touch RAN)\"';touch RAN;'\" --out /"
	cases := map[string]struct{ reason, version string }{
		"Version": {"A version is passed on as it is.", "v1.2.3-rc.1"},
		"Hostile": {"What has a meaning for a shell or make must stay one argument.", strings.ReplaceAll(hostile, "RAN", ran)},
	}
	for _, target := range []string{"image", "release", "release-again"} {
		for name, tc := range cases {
			for _, way := range []string{"Argument", "Environment"} {
				t.Run(target+"/"+name+"/"+way, func(t *testing.T) {
					if err := os.RemoveAll(args); err != nil {
						t.Fatal(err)
					}
					cmd := exec.CommandContext(t.Context(), "make", "-C", root, target, "COMMIT="+tc.version, "SOURCE_DATE_EPOCH="+tc.version)
					cmd.Env = append(os.Environ(), "PATH="+program+":"+os.Getenv("PATH"), "ARGUMENTS="+args, "MAKEFLAGS=")
					if way == "Argument" {
						cmd.Args = append(cmd.Args, "VERSION="+tc.version)
					} else {
						cmd.Env = append(cmd.Env, "VERSION="+tc.version)
					}
					out, err := cmd.CombinedOutput() // release-again fails, since fakeGo makes no files.
					if _, err := os.Stat(ran); err == nil {
						t.Errorf("%s It was run.", tc.reason)
						_ = os.Remove(ran)
					}
					b, readErr := os.ReadFile(args)
					if readErr != nil {
						t.Fatalf("%s make has not come to its command: %v: %s", tc.reason, err, out)
					}
					got := map[string]string{}
					list := strings.Split(string(b), "\n")
					for i, each := range list[:len(list)-1] {
						if each == "--version" || each == "--commit" || each == "--time" {
							got[each] = list[i+1]
						}
					}
					want := map[string]string{"--version": tc.version, "--commit": tc.version, "--time": tc.version}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
					}
				})
			}
		}
	}
}
