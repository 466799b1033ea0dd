package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	stdcmp "cmp"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
)

const (
	dockerfile = `FROM --platform=$BUILDPLATFORM golang:VERSION AS build
WORKDIR /src
COPY . .
ARG TARGETOS
ARG TARGETARCH
ENV CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH
RUN go build -trimpath -buildvcs=false -ldflags "-s -w" -o /out/program .
FROM scratch
COPY --from=build /out/program /program
ENTRYPOINT ["/program"]
`
	program = `package main

import "k8s.io/utils/ptr"

func main() { ptr.To(1) }
`
)

var at = time.Unix(1795376940, 0)

// utils is the only dependency of the small program, as the tests' go.mod has it.
func utils(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`k8s\.io/utils (v\S+)`).FindStringSubmatch(read(t, "../go.mod"))
	if found == nil {
		t.Fatal("go.mod has no k8s.io/utils any more")
	}

	return found[1]
}

// goMod returns the go.mod of a small program.
func goMod(t *testing.T, module string) string {
	t.Helper()

	return "module " + module + "\n\ngo 1.26.0\n\nrequire k8s.io/utils " + utils(t) + "\n"
}

// checkout makes a checkout of a small program with one dependency. Other files take the place of
// its own, or remove them if they are empty.
func checkout(t *testing.T, other map[string]string) (root string) {
	t.Helper()
	files := map[string]string{
		"Dockerfile":    strings.Replace(dockerfile, "VERSION", strings.TrimPrefix(runtime.Version(), "go"), 1),
		".dockerignore": "*\n!*.go\n!go.*\n!utils\n", "go.mod": goMod(t, module), "go.sum": read(t, "../go.sum"), "main.go": program,
		"CHANGELOG.md": "changes", "LICENSE": "license", "README.md": "read me",
	}
	maps.Copy(files, other)
	root = t.TempDir()
	for name, content := range files {
		if content != "" {
			write(t, filepath.Join(root, name), content)
		}
	}

	return root
}

// TestMake makes a release twice, from two copies.
func TestMake(t *testing.T) {
	var sums [2]string
	var r Release
	for i := range sums {
		r = Release{Root: checkout(t, nil), Out: filepath.Join(t.TempDir(), "out"), Version: "v1.2.3", Commit: "0123456", Time: at}
		if err := r.Make(t.Context()); err != nil {
			t.Fatal(err)
		}
		sums[i] = read(t, filepath.Join(r.Out, Sums))
	}
	if diff := cmp.Diff(sums[0], sums[1]); diff != "" {
		t.Errorf("The same, made in two folders, must be the same bytes: -first, +second:\n%s", diff)
	}
	var names []string
	for line := range strings.Lines(sums[0]) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got := fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, filepath.Join(r.Out, name))))); got != sum {
			t.Errorf("the checksum of %s is %s, and not %s", name, got, sum)
		}
		names = append(names, strings.TrimPrefix(name, Name+"_v1.2.3_"))
	}
	want := []string{
		"darwin_amd64.cdx.json", "darwin_amd64.tar.gz", "darwin_arm64.cdx.json", "darwin_arm64.tar.gz", "krew.yaml",
		"linux_amd64.cdx.json", "linux_amd64.tar.gz", "linux_arm64.cdx.json", "linux_arm64.tar.gz", "oci.tar",
		"windows_amd64.cdx.json", "windows_amd64.zip",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("The files of a release: -want, +got:\n%s", diff)
	}
	t.Run("Tar", func(t *testing.T) { wantTar(t, filepath.Join(r.Out, Name+"_v1.2.3_linux_arm64.tar.gz")) })
	t.Run("Zip", func(t *testing.T) { wantZip(t, filepath.Join(r.Out, Name+"_v1.2.3_windows_amd64.zip")) })
	t.Run("Krew", func(t *testing.T) { wantKrew(t, r.Out) })
	t.Run("Bill", func(t *testing.T) { wantBill(t, filepath.Join(r.Out, Name+"_v1.2.3_linux_amd64.cdx.json")) })
}

func wantTar(t *testing.T, file string) {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(read(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	if z.Name != "" || !z.ModTime.IsZero() {
		t.Errorf("the time and name of the file are in it: %+v", z.Header)
	}
	got := map[string]string{}
	var licenses []byte
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = fmt.Sprintf("%o %d:%d %d", h.Mode, h.Uid, h.Gid, h.ModTime.Unix())
		if strings.HasSuffix(h.Name, "THIRD_PARTY_LICENSES.txt") {
			if licenses, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := Name + "_v1.2.3_linux_arm64/"
	want := map[string]string{
		dir: "755 0:0 1795376940", dir + Name: "755 0:0 1795376940", dir + "CHANGELOG.md": "644 0:0 1795376940", dir + "LICENSE": "644 0:0 1795376940",
		dir + "README.md": "644 0:0 1795376940", dir + "THIRD_PARTY_LICENSES.txt": "644 0:0 1795376940",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the files of the archive: -want, +got:\n%s", diff)
	}
	for _, must := range []string{"\nk8s.io/utils v", "Apache License", "\nGo " + runtime.Version() + ", LICENSE\n", "The Go Authors"} {
		if !bytes.Contains(licenses, []byte(must)) {
			t.Errorf("the licenses have no %q", must)
		}
	}
}

func wantZip(t *testing.T, file string) {
	t.Helper()
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	found := false
	for _, f := range z.File {
		found = found || f.Name == Name+"_v1.2.3_windows_amd64/"+Name+".exe"
		if !f.Modified.Equal(at) {
			t.Errorf("%s is of %s", f.Name, f.Modified)
		}
	}
	if !found || len(z.File) != 6 { // The sixth is the folder.
		t.Errorf("it has %d files, and the program: %t", len(z.File), found)
	}
}

func wantBill(t *testing.T, file string) {
	t.Helper()
	var got cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(strings.NewReader(read(t, file)), cyclonedx.BOMFileFormatJSON).Decode(&got); err != nil {
		t.Fatal(err)
	}
	self := got.Metadata.Component
	if self.Name != Name || self.Version != "v1.2.3" || self.PackageURL != "pkg:golang/"+module+"@v1.2.3" || got.Metadata.Timestamp != "2026-11-22T19:49:00Z" {
		t.Errorf("it is about %+v", got.Metadata)
	}
	var urls []string
	for _, c := range *got.Components {
		urls = append(urls, c.PackageURL)
	}
	want := []string{"pkg:golang/k8s.io/utils@" + utils(t), "pkg:golang/std@" + strings.TrimPrefix(runtime.Version(), "go")}
	if diff := cmp.Diff(want, urls); diff != "" {
		t.Errorf("the modules of the program: -want, +got:\n%s", diff)
	}
	if hashes := (*got.Components)[0].Hashes; hashes == nil || len((*hashes)[0].Value) != 2*sha256.Size {
		t.Errorf("it has no hash of the module")
	}
}

// TestIncomplete tries releases that must fail.
func TestIncomplete(t *testing.T) {
	cases := map[string]struct {
		reason  string
		version string
		files   map[string]string
		want    string
	}{
		"Version":     {reason: "An attacker who can push a tag chooses its name.", version: "v1.2.3 -X main.commit=x", want: "a version is like v1.2.3"},
		"NoLicense":   {reason: "Each archive has our license.", files: map[string]string{"LICENSE": ""}, want: "LICENSE: no such file"},
		"OtherModule": {reason: "The bill would be about something else.", files: map[string]string{"go.mod": goMod(t, "example.org/other")}, want: `it is built from module "example.org/other"`},
		"Replaced": {
			reason: "A user who requires the module gets another version than the program has.", want: "go.mod replaces k8s.io/utils",
			files: map[string]string{
				"go.mod": goMod(t, module) + "\nreplace k8s.io/utils => ./utils\n", "utils/go.mod": "module k8s.io/utils\n\ngo 1.26.0\n",
				"utils/ptr/ptr.go": "package ptr\n\nfunc To[T any](v T) *T { return &v }\n",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := Release{Root: checkout(t, tc.files), Out: filepath.Join(t.TempDir(), "out"), Version: stdcmp.Or(tc.version, "v1.2.3"), Time: at}
			if err := r.Make(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s want %q, got %v", tc.reason, tc.want, err)
			}
			if _, err := os.Stat(filepath.Join(r.Out, Sums)); err == nil {
				t.Errorf("%s it has checksums all the same", tc.reason)
			}
		})
	}
}

func TestLicenses(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  []string
		want   string
	}{
		"One":     {reason: "A module has a license.", files: []string{"LICENSE", "go.mod"}, want: "LICENSE"},
		"Spelt":   {reason: "It may be spelt in other ways.", files: []string{"licence.md"}, want: "licence.md"},
		"Several": {reason: "Notices are passed on too.", files: []string{"COPYING.LESSER", "LICENSE-MIT", "NOTICE"}, want: "COPYING.LESSER LICENSE-MIT NOTICE"},
		"None":    {reason: "A module without a license can't be distributed.", files: []string{"licenses.go", "unlicensed.md"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range tc.files {
				write(t, filepath.Join(dir, f), "text of "+f)
			}
			var b bytes.Buffer
			err := writeLicenses(&b, "m", dir)
			var got []string
			for line := range strings.Lines(b.String()) {
				if f, ok := strings.CutPrefix(strings.TrimSpace(line), "text of "); ok {
					got = append(got, f)
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" || (err == nil) != (tc.want != "") {
				t.Errorf("%s (%v) -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestHashOf(t *testing.T) {
	cases := map[string]struct {
		reason, sum, want string
	}{
		"Known":  {reason: "It is what go.sum has, in hexadecimal.", sum: "h1:" + strings.Repeat("A", 43) + "=", want: strings.Repeat("0", 64)},
		"None":   {reason: "Without one it is not known what was compiled."},
		"Other":  {reason: "Another algorithm is none that we can name.", sum: "h2:" + strings.Repeat("A", 43) + "="},
		"Broken": {reason: "One that is cut off is none.", sum: "h1:AAAA"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := hashOf(&debug.Module{Path: "m", Sum: tc.sum})
			if diff := cmp.Diff(tc.want, got); diff != "" || (err == nil) != (tc.want != "") {
				t.Errorf("%s (%v) -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	return string(b)
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}
