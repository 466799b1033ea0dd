package cases

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCases expects every case to name only files that it has, and to have only files that it names
// or a scene reads.
func TestCases(t *testing.T) {
	read := []string{"case.yaml", "platform.yaml", "objects.yaml", "source.yaml", "target.yaml", "change.yaml"}
	folders, used := map[string]bool{}, map[string]bool{}
	for _, version := range []string{"v2", "v1.20"} {
		all, err := Load(".", version)
		if err != nil {
			t.Fatal(err)
		}
		plain := 0
		for name, c := range all {
			used[name] = true
			if c.Plain() {
				plain++
			}
			files := slices.Clone(read)
			for _, step := range slices.Concat(c.Theirs, c.Made, c.Before, c.Restoring, c.Restored) {
				if n := setIn(step); n != 1 {
					t.Errorf("a step of case %s says %d things: %+v", name, n, step)
				}
				if step.Apply == "" {
					continue
				}
				files = append(files, step.Apply)
				if _, err := os.Stat(filepath.Join(name, step.Apply)); err != nil {
					t.Errorf("case %s applies a file that is not there: %v", name, err)
				}
			}
			for _, file := range filesOf(t, name) {
				if !slices.Contains(files, strings.Replace(file, "-v1.yaml", ".yaml", 1)) {
					t.Errorf("case %s does not use its file %s", name, file)
				}
			}
		}
		if few := 10; plain < few {
			t.Errorf("the tests that draw from the plain cases of %s have only %d to draw from", version, plain)
		}
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			folders[e.Name()] = true
		}
	}
	if diff := cmp.Diff(folders, used); diff != "" {
		t.Errorf("-folders, +cases that run on a version:\n%s", diff)
	}
}

func filesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}

	return names
}

// setIn counts the fields of a step that are set.
func setIn(step Step) (n int) {
	for _, field := range reflect.ValueOf(step).Fields() {
		if !field.IsZero() {
			n++
		}
	}

	return n
}

func TestLoadRefuses(t *testing.T) {
	cases := map[string]struct {
		reason, text string
	}{
		"NoReason":     {"What is right must be said.", "versions: [v2]\n"},
		"NoVersions":   {"A case that runs nowhere proves nothing.", "reason: It is right.\n"},
		"UnknownField": {"A typing error must not turn an expectation off.", "reason: It is right.\nversions: [v2]\nexpects: {}\n"},
		"UnknownStep":  {"Nor a step.", "reason: It is right.\nversions: [v2]\nmade: [{aply: file.yaml}]\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "one"), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "one", "case.yaml"), []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(dir, "v2"); err == nil {
				t.Errorf("%s\nIt was read.", tc.reason)
			}
		})
	}
}
