// Package image builds the plugin's image from its Dockerfile without a container engine, and runs
// it. It supports only the instructions of this repository's Dockerfile and fails for others, so
// that it builds the same image as an engine.
package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// A Build has the settings of an image build.
type Build struct {
	// Root is the folder with the Dockerfile, which is the build context.
	Root string
	// Dir has the files of the stages. It must exist as long as the images are in use.
	Dir string
	// Version and Commit are build arguments.
	Version, Commit string
	// Created is the time of all files in the image, and of the image.
	Created time.Time
}

var (
	// versionRE matches a semantic version with a v before it, as in Go and git tags, without a +,
	// which an image's tag can't have.
	versionRE = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	// commitRE matches a commit from git describe, or another simple text.
	commitRE = regexp.MustCompile(`^[0-9A-Za-z-]*$`)
)

// Check returns an error for an invalid version or commit. Both become linker arguments and file
// names, and an attacker who can push a tag chooses one.
func (b Build) Check() error {
	if !versionRE.MatchString(b.Version) {
		return fmt.Errorf("cannot build version %q: a version is like v1.2.3 or v1.2.3-rc.1", b.Version)
	}
	if !commitRE.MatchString(b.Commit) {
		return fmt.Errorf("cannot build commit %q: a commit is like 0123456789abcdef", b.Commit)
	}

	return nil
}

// Platforms returns the platforms of the published image.
func Platforms() []v1.Platform {
	return []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
}

// Local returns the platform whose programs run on this machine, if it runs Linux.
func Local() v1.Platform { return v1.Platform{OS: "linux", Architecture: runtime.GOARCH} }

// Images builds the image for all Platforms.
func (b Build) Images(ctx context.Context) ([]v1.Image, error) {
	var all []v1.Image
	for _, p := range Platforms() {
		image, err := b.Image(ctx, p)
		if err != nil {
			return nil, err
		}
		all = append(all, image)
	}

	return all, nil
}

// Image builds the image for one platform.
func (b Build) Image(ctx context.Context, p v1.Platform) (v1.Image, error) { //nolint:ireturn // The library's images are interfaces.
	if err := b.Check(); err != nil {
		return nil, err
	}
	last, err := b.stages(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("cannot build the image for %s: %w", p, err)
	}
	config := &v1.ConfigFile{
		Architecture: p.Architecture, OS: p.OS, Variant: p.Variant, Created: v1.Time{Time: b.Created}, Config: last.config,
		RootFS: v1.RootFS{Type: "layers"},
	}
	image, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), config)
	if err == nil {
		image, err = mutate.Append(image, last.layers...)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot assemble the image for %s: %w", p, err)
	}

	return image, nil
}

// stages runs the stages of the Dockerfile and returns the last one.
func (b Build) stages(ctx context.Context, p v1.Platform) (*stage, error) {
	file, err := os.ReadFile(filepath.Join(b.Root, "Dockerfile"))
	if err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(bytes.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("cannot read the Dockerfile: %w", err)
	}
	// The Dockerfile is parsed for each platform, because an instruction expands its variables in
	// place.
	list, global, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot understand the Dockerfile: %w", err)
	}
	if len(global) > 0 {
		return nil, fmt.Errorf("cannot carry out %s: it is known only inside of a stage here", global[0].String())
	}
	files, err := readContext(b.Root)
	if err != nil {
		return nil, err
	}
	given := map[string]string{"VERSION": b.Version, "COMMIT": b.Commit, "TARGETOS": p.OS, "TARGETARCH": p.Architecture}
	built := map[string]*stage{}
	var last *stage
	for i, s := range list {
		last = &stage{
			created: b.Created, context: files, given: given, others: built, lex: shell.NewLex(parsed.EscapeToken),
			dir: filepath.Join(b.Dir, strings.ReplaceAll(p.String(), "/", "-"), strconv.Itoa(i)), workdir: "/", vars: map[string]string{},
		}
		if err := last.carryOut(ctx, s); err != nil {
			return nil, err
		}
		built[s.Name] = last
	}
	if last == nil || !last.scratch {
		return nil, errors.New("cannot build an image: the last stage is not FROM scratch")
	}

	return last, nil
}
