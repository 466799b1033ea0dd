package release

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/image"
)

const windows = "windows"

// documents returns the files of the checkout that each archive has.
func documents() []string { return []string{"CHANGELOG.md", "LICENSE", "README.md"} }

// gather copies the files of an archive into a folder.
func (r Release) gather(dir, program string, licenses []byte, p v1.Platform) error {
	name := Name
	if p.OS == windows {
		name += ".exe"
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	files := map[string]string{name: program}
	for _, d := range documents() {
		files[d] = filepath.Join(r.Root, d)
	}
	for to, from := range files {
		mode := os.FileMode(0o644)
		if to == name {
			mode = 0o755
		}
		b, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, to), b, mode); err != nil {
			return err
		}
	}

	return os.WriteFile(filepath.Join(dir, "THIRD_PARTY_LICENSES.txt"), licenses, 0o644)
}

// archive packs a folder: as a zip file for Windows, else as a compressed tar file.
func (r Release) archive(dir, suffix string, p v1.Platform) error {
	var b bytes.Buffer
	if p.OS == windows {
		if err := r.zip(&b, dir, suffix); err != nil {
			return fmt.Errorf("cannot pack %s: %w", dir, err)
		}

		return os.WriteFile(r.file(suffix+".zip"), b.Bytes(), 0o644)
	}
	z := gzip.NewWriter(&b) // Its header has neither name nor time.
	if err := errors.Join(image.WriteTar(z, dir, r.folder(suffix), r.Time), z.Close()); err != nil {
		return fmt.Errorf("cannot pack %s: %w", dir, err)
	}

	return os.WriteFile(r.file(suffix+".tar.gz"), b.Bytes(), 0o644)
}

// folder returns the archive's top folder.
func (r Release) folder(suffix string) string { return Name + "_" + r.Version + suffix + "/" }

func (r Release) zip(w io.Writer, dir, suffix string) error {
	entries, err := os.ReadDir(dir) // In order of names.
	if err != nil {
		return err
	}
	z := zip.NewWriter(w)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: r.folder(suffix) + e.Name(), Method: zip.Deflate, Modified: r.Time.UTC()}
		header.SetMode(0o644)
		f, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := f.Write(b); err != nil {
			return err
		}
	}

	return z.Close()
}
