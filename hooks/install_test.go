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
	cases := map[string]struct {
		reason, program string
		// before are the files in the directory, by name, with their content. A name that ends with a slash is that of a folder.
		before map[string]string
		// target is the directory below it.
		target string
		// want are the files afterwards, by name, with their mode.
		want map[string]string
		err  string
	}{
		"Empty": {
			reason: "The target must hold the program, executable by every user, and no other file: Velero would run that too.", program: program,
			want: map[string]string{Name: "-rwxr-xr-x new"},
		},
		"Older": {
			reason: "The command must replace an older version and keep other files.", program: program, before: map[string]string{Name: "older, and longer", "other": "other"},
			want: map[string]string{Name: "-rwxr-xr-x new", "other": "-r-xr-xr-x other"},
		},
		"Unreadable": {
			reason: "A failed copy must keep the older version.", program: t.TempDir(), before: map[string]string{Name: "older"},
			want: map[string]string{Name: "-r-xr-xr-x older"}, err: "cannot install DIR/" + Name + ": ",
		},
		"NoVolume": {
			reason: "Without the volume the error must name it.", program: program, target: "missing", want: map[string]string{},
			err: `cannot install into DIR/missing: no such file or directory; mount the volume "plugins"`,
		},
		"NotADirectory": {
			reason: "A file can't be the target directory.", program: program, before: map[string]string{"target": ""}, target: "target",
			want: map[string]string{"target": "-r-xr-xr-x "}, err: "cannot install into DIR/target: not a directory; mount",
		},
		"Occupied": {
			reason: "The error must name a file that the command can't replace.", program: program, before: map[string]string{Name + "/": ""},
			want: map[string]string{Name: "directory"}, err: "cannot install DIR/" + Name + ": rename ",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for name, content := range tc.before {
				if folder, ok := strings.CutSuffix(name, "/"); ok {
					if err := os.Mkdir(filepath.Join(root, folder), 0o755); err != nil {
						t.Fatal(err)
					}

					continue
				}
				put(t, filepath.Join(root, name), content, 0o555)
			}
			dir, got := filepath.Join(root, tc.target), ""
			path, err := install(tc.program, dir)
			if err != nil {
				got = strings.ReplaceAll(err.Error(), root, "DIR")
			}
			if (err == nil) != (tc.err == "") || !strings.HasPrefix(got, tc.err) || err == nil && path != filepath.Join(dir, Name) {
				t.Errorf("%s want the error %q, got %q, %s", tc.reason, tc.err, got, path)
			}
			if diff := cmp.Diff(tc.want, filesIn(t, root)); diff != "" {
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
