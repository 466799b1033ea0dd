package image

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

var created = time.Unix(1795376940, 0)

// TestImage builds the image from this repository's Dockerfile, and runs it as "velero plugin add"
// does.
func TestImage(t *testing.T) {
	root, err := build.Root()
	must(t, err)
	b := Build{Root: root, Dir: t.TempDir(), Version: "v1.2.3", Commit: "0123456", Created: created}
	image, err := b.Image(t.Context(), Local())
	must(t, err)
	config, err := image.ConfigFile()
	must(t, err)
	const program = "/plugins/velero-plugin-for-crossplane"
	want := v1.Config{
		User: "65532:65532", Entrypoint: []string{program}, Cmd: []string{"install"},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "velero-plugin-for-crossplane",
			"org.opencontainers.image.description": "Makes Velero backup and restore safe for Crossplane",
			"org.opencontainers.image.source":      "https://github.com/crossplane-contrib/velero-plugin-for-crossplane",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     "v1.2.3",
			"org.opencontainers.image.revision":    "0123456",

			"org.opencontainers.image.documentation": "https://github.com/crossplane-contrib/velero-plugin-for-crossplane/tree/v1.2.3/docs",
			"io.artifacthub.package.readme-url":      "https://raw.githubusercontent.com/crossplane-contrib/velero-plugin-for-crossplane/v1.2.3/README.md",
			"io.artifacthub.package.license":         "Apache-2.0",
			"io.artifacthub.package.keywords":        "crossplane,velero,backup,restore,disaster-recovery",
		},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("the image's configuration: -want, +got:\n%s", diff)
	}

	c, err := Unpack(image, filepath.Join(t.TempDir(), "root"))
	must(t, err)
	out, alone, err := c.Start(t.Context())
	must(t, err)
	t.Logf("alone in its file system: %t: %s", alone, out)
	if !strings.Contains(out, "v1.2.3 (commit 0123456, ") || alone && !strings.HasSuffix(out, " as "+Target+"/velero-plugin-for-crossplane\n") {
		t.Errorf("it must say in one line what it has installed, and where: %s", out)
	}
	installed, err := c.Installed()
	must(t, err)
	if filepath.Base(installed) != filepath.Base(program) {
		t.Errorf("the examples and hooks name the program otherwise: %s", installed)
	}
	got, err := os.ReadFile(installed)
	must(t, err)
	shipped, err := os.ReadFile(c.Path(program))
	must(t, err)
	if info, err := os.Stat(installed); err != nil || !bytes.Equal(got, shipped) || info.Mode() != 0o755 {
		t.Errorf("the installed program must be the shipped one, executable for all users: %v, %v", info.Mode(), err)
	}
	said, err := exec.CommandContext(t.Context(), installed, "--version").Output()
	must(t, err)
	if !strings.HasPrefix(string(said), "velero-plugin-for-crossplane v1.2.3 (commit 0123456, ") {
		t.Errorf("the program's version is %s", said)
	}
}

// The small program's Dockerfile uses all supported instructions.
const (
	small = `FROM --platform=$BUILDPLATFORM golang:VERSION@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef AS build
WORKDIR /src
COPY go.mod ./
RUN go mod download
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG NAME=small
ENV CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH
RUN go build -trimpath -buildvcs=false -ldflags "-s -w" -o /out/$NAME .
FROM scratch
ARG VERSION=none
LABEL version=$VERSION
COPY doc/a.md /doc/
COPY --from=build /out/small /
USER 1:1
ENTRYPOINT ["/small"]
CMD ["install"]
`
	smallProgram = "package main\n\nfunc main() {}\n"
)

// smallBuild writes the sources of a small image.
func smallBuild(t *testing.T, dockerfile string) Build {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"Dockerfile":    strings.ReplaceAll(dockerfile, "golang:VERSION", "golang:"+strings.TrimPrefix(runtime.Version(), "go")),
		".dockerignore": "*\n!*.go\n!go.mod\n!doc\n**/*_test.go\n",
		"go.mod":        "module example.org/small\n\ngo 1.26.0\n", "main.go": smallProgram, "main_test.go": "no Go",
		"doc/a.md": "a",
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o644))
	}

	return Build{Root: root, Dir: t.TempDir(), Version: "v1.2.3", Created: created}
}

// TestLayout writes a small image for both platforms and reads it as other tools do.
func TestLayout(t *testing.T) {
	var archives [2][]byte
	for i := range archives {
		b := smallBuild(t, small)
		images, err := b.Images(t.Context())
		must(t, err)
		dir := filepath.Join(t.TempDir(), "layout")
		must(t, WriteLayout(images, dir, "v1.2.3"))
		must(t, WriteLayout(images, dir, "v1.2.3"))
		read, err := layout.ImageIndexFromPath(dir)
		must(t, err)
		must(t, validate.Index(read))
		wantSmall(t, read)

		file := filepath.Join(t.TempDir(), "image.tar")
		must(t, WriteArchive(images, file, "v1.2.3", created))
		archives[i], err = os.ReadFile(file)
		must(t, err)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the same, built in two folders, must be the same bytes")
	}
}

func wantSmall(t *testing.T, outer v1.ImageIndex) {
	t.Helper()
	named, err := outer.IndexManifest()
	must(t, err)
	if len(named.Manifests) != 1 || named.Manifests[0].Annotations[refName] != "v1.2.3" {
		t.Fatalf("a layout has one image with a name, and not %+v", named.Manifests)
	}
	index, err := outer.ImageIndex(named.Manifests[0].Digest)
	must(t, err)
	manifest, err := index.IndexManifest()
	must(t, err)
	if diff := cmp.Diff(map[string]string{"version": "v1.2.3", createdAt: created.UTC().Format(time.RFC3339)}, manifest.Annotations); diff != "" {
		t.Errorf("annotations of the index: -want, +got:\n%s", diff)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := index.Image(m.Digest)
		must(t, err)
		size, err := SizeOf(image)
		must(t, err)
		if size.Platform != m.Platform.String() || size.Unpacked <= size.Pulled || size.Pulled == 0 {
			t.Errorf("its sizes are %+v", size)
		}
		config, err := image.ConfigFile()
		must(t, err)
		if len(config.History) != 2 || !config.Created.Equal(created) || config.Config.Labels["version"] != "v1.2.3" {
			t.Errorf("its configuration is %+v", config)
		}
		c, err := Unpack(image, filepath.Join(t.TempDir(), "root"))
		must(t, err)
		for _, file := range []string{"/small", "/doc/a.md"} {
			if _, err := os.Stat(c.Path(file)); err != nil {
				t.Error(err)
			}
		}
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("platforms: -want, +got:\n%s", diff)
	}
}

// TestUnknown tries Dockerfiles that an engine may build and this package must refuse.
func TestUnknown(t *testing.T) {
	cases := map[string]struct{ reason, old, new, want string }{
		"Base":              {"The base's files would be in the image.", "FROM scratch", "FROM alpine:3", `only FROM scratch and FROM --platform=$BUILDPLATFORM golang:VERSION are known here`},
		"Emulated":          {"Without the platform of the engine, each platform would run its own Go.", "--platform=$BUILDPLATFORM ", "", "are known here"},
		"Digest":            {"An engine goes by the digest alone, so one that is cut off must not look like one.", "89abcdef AS build", "89abcde AS build", "is no digest"},
		"NotTheLast":        {"The last stage is the image.", "CMD [\"install\"]\n", "CMD [\"install\"]\nFROM --platform=$BUILDPLATFORM golang:VERSION\n", "the last stage is not FROM scratch"},
		"Global":            {"An argument ahead of all stages is not one of theirs.", "FROM --platform", "ARG GO=1\nFROM --platform", "known only inside of a stage"},
		"Shell":             {"No shell runs anything here.", "RUN go mod download", "RUN go mod download && go vet", "only one go command"},
		"Program":           {"Nothing but Go is on this machine for sure.", "RUN go mod download", "RUN apk add git", "only go commands"},
		"Mount":             {"A mount would be where the stage's files are.", "RUN go mod download", "RUN --mount=type=cache,target=/go go mod download", "not known here, but as a go command"},
		"RunInScratch":      {"There is nothing to run in an empty image.", "USER 1:1", "RUN go version", "not known here"},
		"EntrypointOfShell": {"The image has no shell that could run it.", `ENTRYPOINT ["/small"]`, "ENTRYPOINT /small", "the image has no shell"},
		"CommandOfShell":    {"Nor its command.", `CMD ["install"]`, "CMD install", "the image has no shell"},
		"Instruction":       {"A new instruction must be supported first.", "USER 1:1", "VOLUME /target", `cannot carry out "VOLUME /target" in line 16`},
		"Environment":       {"A variable of the image's program is an instruction as well.", "USER 1:1", "ENV HOME=/", "not known here"},
		"LabelOfStage":      {"A label of a stage that is thrown away is a mistake.", "WORKDIR /src", "WORKDIR /src\nLABEL a=b", "not known here"},
		"Chmod":             {"A flag that changes what is copied must not be overlooked.", "COPY doc/a.md", "COPY --chmod=0600 doc/a.md", "not known here with its flags"},
		"Ignored":           {"A file that .dockerignore excludes is not in the context of an engine either.", "COPY doc/a.md", "COPY Dockerfile", "the .dockerignore leaves it out"},
		"Stage":             {"A stage has a name.", "--from=build", "--from=golang", "there is no stage golang before"},
		"File":              {"A file that was not built can't be copied.", "/out/small", "/out/large", "no such file"},
		"Folder":            {"Two files can't have one name.", "COPY doc/a.md /doc/", "COPY doc/a.md go.mod /doc", "needs a folder as destination"},
		"Unset":             {"A variable without a value is empty to an engine.", "LABEL version=$VERSION", "LABEL version=$RELEASE", "nothing sets RELEASE before"},
		"UnsetInRun":        {"Also where a shell would expand it.", "/out/$NAME", "/out/$NAMES", "nothing sets NAMES before"},
		"NotGiven":          {"An argument without a default has to be given.", "ARG NAME=small", "ARG NAME", "nothing gives it NAME"},
		"Broken":            {"Go's error must be in the error.", "-trimpath", "-trampoline", "flag provided but not defined: -trampoline"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(small, tc.old) {
				t.Fatalf("there is no %q in the small Dockerfile", tc.old)
			}
			b := smallBuild(t, strings.Replace(small, tc.old, tc.new, 1))
			_, err := b.Image(t.Context(), Local())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestCheck tries versions and commits.
func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason, version, commit string
		want                    string
	}{
		"Release":    {reason: "A release has a semantic version.", version: "v1.2.3", commit: strings.Repeat("0123456789", 4)},
		"PreRelease": {reason: "And so has one ahead of it.", version: "v1.2.3-rc.1", commit: "unknown"},
		"Described":  {reason: "Between releases, git describes what it is.", version: "v1.2.3-4-g0123456-dirty", commit: "0123456-dirty"},
		"Shell":      {reason: "A tag may have what a shell knows.", version: "v1.2.3;touch${IFS}x", want: `cannot build version "v1.2.3;touch${IFS}x"`},
		"Linker":     {reason: "A space would end the linker's argument.", version: "v1.2.3 -X main.commit=x", want: "cannot build version"},
		"Line":       {reason: "A line's end is none of a version.", version: "v1.2.3\n", want: "cannot build version"},
		"Folder":     {reason: "A file's name has the version in it.", version: "v1.2.3-/../../x", want: "cannot build version"},
		"Metadata":   {reason: "An image's tag has no plus.", version: "v1.2.3+x", want: "a version is like v1.2.3 or v1.2.3-rc.1"},
		"None":       {reason: "An empty version identifies no release.", want: `cannot build version ""`},
		"Commit":     {reason: "A commit is an argument of the linker's as well.", version: "v1.2.3", commit: "0 -X main.release=x", want: "cannot build commit"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := Build{Version: tc.version, Commit: tc.commit}.Check()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
