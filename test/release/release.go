// Package release makes the files of a release: programs for each platform, the image, their bills
// of materials, and checksums. They depend only on the files of a checkout, its version, commit and
// time, so that another build gives the same bytes.
package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/image"
)

// Name of the program, and of the files of a release.
const Name = "velero-plugin-for-crossplane"

// A Release has the settings of a release.
type Release struct {
	// Root is the checkout.
	Root string
	// Out is the folder for the files of the release. Its old contents are removed.
	Out             string
	Version, Commit string
	// Time is the commit's time, and that of all files.
	Time time.Time
	// Platforms of the programs; Platforms() if empty.
	Platforms []v1.Platform
	// Say is called with each file that is written.
	Say func(file string)
}

// Platforms returns the platforms of the programs: those of Velero's servers, and those on which
// users run the commands.
func Platforms() []v1.Platform {
	return append(image.Platforms(),
		v1.Platform{OS: "darwin", Architecture: "amd64"},
		v1.Platform{OS: "darwin", Architecture: "arm64"},
		v1.Platform{OS: "windows", Architecture: "amd64"},
	)
}

// Make makes the release.
func (r Release) Make(ctx context.Context) error {
	b := image.Build{Root: r.Root, Version: r.Version, Commit: r.Commit, Created: r.Time}
	if err := b.Check(); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(r.Out), os.MkdirAll(r.Out, 0o755)); err != nil {
		return fmt.Errorf("cannot empty the folder of the release: %w", err)
	}
	tmp, err := os.MkdirTemp("", "release-")
	if err != nil {
		return fmt.Errorf("cannot make a folder to build in: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	b.Dir = tmp
	platforms := r.Platforms
	if len(platforms) == 0 {
		platforms = Platforms()
	}
	var images []v1.Image
	for _, p := range platforms {
		built, err := b.Image(ctx, p)
		if err != nil {
			return err
		}
		if err := r.publish(ctx, built, filepath.Join(tmp, "unpacked"+suffix(p)), p); err != nil {
			return fmt.Errorf("cannot publish the program for %s: %w", p, err)
		}
		if slices.ContainsFunc(image.Platforms(), p.Equals) {
			images = append(images, built)
		}
	}
	if err := r.krew(platforms); err != nil {
		return err
	}
	if err := image.WriteArchive(images, r.file("_oci.tar"), r.Version, r.Time); err != nil {
		return err
	}

	return r.sum()
}

// publish writes the archive of a platform's program, and its bill of materials. The program is that
// of the image, because only the Dockerfile has its build flags.
func (r Release) publish(ctx context.Context, built v1.Image, dir string, p v1.Platform) error {
	c, err := image.Unpack(built, dir)
	if err != nil {
		return err
	}
	program, err := os.ReadFile(c.Program())
	if err != nil {
		return err
	}
	made, err := madeOf(program)
	if err != nil {
		return err
	}
	texts, err := licenses(ctx, r.Root, made)
	if err != nil {
		return err
	}
	if err := r.archive(program, texts, p); err != nil {
		return err
	}

	return r.bill(program, made, suffix(p))
}

// file returns the path of a file of the release, and reports it to Say.
func (r Release) file(suffix string) string {
	name := Name + "_" + r.Version + suffix
	if r.Say != nil {
		r.Say(name)
	}

	return filepath.Join(r.Out, name)
}

// Sums is the name of the file with the checksums of all others, as sha256sum --check reads them.
const Sums = "SHA256SUMS"

func (r Release) sum() error {
	var b bytes.Buffer
	files := os.DirFS(r.Out)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error { // In order of names.
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(content), name)

		return err
	})
	if err != nil {
		return fmt.Errorf("cannot read the files of the release: %w", err)
	}

	return os.WriteFile(filepath.Join(r.Out, Sums), b.Bytes(), 0o644)
}
