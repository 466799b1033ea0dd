package stack

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReplaceDir(t *testing.T) {
	cases := map[string]struct {
		reason string
		had    map[string]string
	}{
		"Missing":  {reason: "The first snapshot has no directory yet."},
		"Outdated": {reason: "Later files must not stay beside the saved ones.", had: map[string]string{"later": "x", "member/wal": "longer than before"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
			want := map[string]string{"member/wal": "abc", "member/snap/db": "def"}
			write(t, from, want)
			write(t, to, tc.had)
			if err := replaceDir(to, from); err != nil {
				t.Fatalf("%s\nerror: %v", tc.reason, err)
			}
			if diff := cmp.Diff(want, contents(t, to)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(root, name)
		files[name] = string(b)

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return files
}
