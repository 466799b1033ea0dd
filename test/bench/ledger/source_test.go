package ledger

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func TestSourceOf(t *testing.T) {
	before := map[string]string{
		"go.mod": "module m", "main.go": "package main", "internal/xp/xp.go": "package xp", "main_test.go": "package main", "docs/a.md": "a",
		"test/drill/drill.go": "package drill", "bin/x.go": "package x",
	}
	cases := map[string]struct {
		reason, file string
		same         bool
	}{
		"Source":  {reason: "Another plugin must be measured again.", file: "internal/xp/xp.go"},
		"Module":  {reason: "And one of other libraries.", file: "go.mod"},
		"Test":    {reason: "A test is no part of it.", file: "main_test.go", same: true},
		"Harness": {reason: "Nor is what measures it.", file: "test/drill/drill.go", same: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := maps.Clone(before)
			after[tc.file] += " // changed"
			one, other := sourceOf(t, before), sourceOf(t, after)
			if (one == other) != tc.same {
				t.Errorf("%s\n%s and %s", tc.reason, one, other)
			}
		})
	}
}

func sourceOf(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	of, err := SourceOf(root)
	if err != nil {
		t.Fatal(err)
	}

	return of
}
