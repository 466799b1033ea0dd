package hooks

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInstall(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	put(t, program, "new", 0o700)
	type want struct {
		// files are the directory's files afterwards, by name, with their mode.
		files map[string]string
		err   string
	}
	cases := map[string]struct {
		reason  string
		program string
		prepare func(t *testing.T, dir string) string
		want    want
	}{
		"Empty": {
			reason:  "The target must hold the program, executable by every user, and no other file: Velero would run that too.",
			program: program,
			want:    want{files: map[string]string{Name: "-rwxr-xr-x new"}},
		},
		"Older": {
			reason:  "The command must replace an older version of any mode and keep other files.",
			program: program,
			prepare: func(t *testing.T, dir string) string {
				t.Helper()
				put(t, filepath.Join(dir, Name), "older, and longer", 0o555)
				put(t, filepath.Join(dir, "velero-plugin-for-aws"), "other", 0o755)

				return dir
			},
			want: want{files: map[string]string{Name: "-rwxr-xr-x new", "velero-plugin-for-aws": "-rwxr-xr-x other"}},
		},
		"Unreadable": {
			reason:  "A failed copy must keep the older version.",
			program: t.TempDir(),
			prepare: func(t *testing.T, dir string) string {
				t.Helper()
				put(t, filepath.Join(dir, Name), "older", 0o755)

				return dir
			},
			want: want{files: map[string]string{Name: "-rwxr-xr-x older"}, err: "cannot install DIR/" + Name + ": "},
		},
		"NoVolume": {
			reason:  "Without the volume the error must name it.",
			program: program,
			prepare: func(_ *testing.T, dir string) string { return filepath.Join(dir, "missing") },
			want:    want{files: map[string]string{}, err: `cannot install into DIR/missing: no such file or directory; mount the volume "plugins"`},
		},
		"NotADirectory": {
			reason:  "A file can't be the target directory.",
			program: program,
			prepare: func(t *testing.T, dir string) string {
				t.Helper()
				put(t, filepath.Join(dir, "target"), "", 0o644)

				return filepath.Join(dir, "target")
			},
			want: want{files: map[string]string{"target": "-rw-r--r-- "}, err: "cannot install into DIR/target: not a directory; mount"},
		},
		"Occupied": {
			reason:  "The error must name a file that the command can't replace.",
			program: program,
			prepare: func(t *testing.T, dir string) string {
				t.Helper()
				if err := os.MkdirAll(filepath.Join(dir, Name), 0o755); err != nil {
					t.Fatal(err)
				}

				return dir
			},
			want: want{files: map[string]string{Name: "directory"}, err: "cannot install DIR/" + Name + ": rename "},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := root
			if tc.prepare != nil {
				dir = tc.prepare(t, root)
			}
			path, err := install(tc.program, dir)
			switch {
			case err != nil && (tc.want.err == "" || !strings.HasPrefix(strings.ReplaceAll(err.Error(), root, "DIR"), tc.want.err)):
				t.Errorf("%s want the error %q, got %q", tc.reason, tc.want.err, err)
			case err == nil && (tc.want.err != "" || path != filepath.Join(dir, Name)):
				t.Errorf("%s want the error %q, got %s", tc.reason, tc.want.err, path)
			}
			if diff := cmp.Diff(tc.want.files, filesIn(t, root)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestInstallForbidden installs into a directory without write permission.
func TestInstallForbidden(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write anywhere; make image and the tests on the real stack install as another user")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil { //nolint:gosec // It is a directory.
		t.Fatal(err)
	}
	if _, err := install(dir, dir); err == nil || !strings.Contains(err.Error(), "allow the user ") {
		t.Errorf("the error must contain the next step: %v", err)
	}
}

// TestInstallCommand installs the running program, as the image does.
func TestInstallCommand(t *testing.T) {
	dir := t.TempDir()
	r := command(t, nil, "install", "--target", dir)
	if want := " as " + filepath.Join(dir, Name) + "\n"; r.code != ExitFine || r.out != "" || !strings.HasSuffix(r.err, want) {
		t.Fatalf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(self) //nolint:gosec // It is this test.
	if err != nil {
		t.Fatal(err)
	}
	if got := filesIn(t, dir)[Name]; got != "-rwxr-xr-x "+string(want) {
		t.Error("the installed program must be the running program")
	}
	if r := command(t, nil, "install", "--target", filepath.Join(dir, "missing")); r.code != ExitFailed {
		t.Errorf("without the volume: exit code %d: %s", r.code, r.err)
	}
	if r := command(t, nil, "install", dir); r.code != ExitUsage {
		t.Errorf("with an argument: exit code %d: %s", r.code, r.err)
	}
}

func put(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// filesIn returns the mode and content of each file in a directory, by name.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		if e.IsDir() {
			files[e.Name()] = "directory"

			continue
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		b, err := fs.ReadFile(os.DirFS(dir), e.Name())
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = info.Mode().String() + " " + string(b)
	}

	return files
}
