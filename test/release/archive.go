package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing/fstest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// windows is the platform with another program name and another kind of archive.
const windows = "windows"

// programOf returns the name of the program on a platform, and packed how its archive's name ends.
func programOf(p v1.Platform) (name, packed string) {
	if p.OS == windows {
		return Name + ".exe", ".zip"
	}

	return Name, ".tar.gz"
}

// archive packs a platform's program with its documents: as a zip file for Windows, else as a
// compressed tar file. Their headers have no other names and times than those of the release.
func (r Release) archive(program, licenses []byte, p v1.Platform) error {
	name, packed := programOf(p)
	files := fstest.MapFS{
		r.folder(p):              {Mode: os.ModeDir | 0o755},
		r.folder(p) + "/" + name: {Mode: 0o755, Data: program},
		r.folder(p) + "/THIRD_PARTY_LICENSES.txt": {Mode: 0o644, Data: licenses},
	}
	for _, document := range []string{"CHANGELOG.md", "LICENSE", "README.md"} {
		b, err := os.ReadFile(filepath.Join(r.Root, document))
		if err != nil {
			return err
		}
		files[r.folder(p)+"/"+document] = &fstest.MapFile{Mode: 0o644, Data: b}
	}
	for _, f := range files {
		f.ModTime = r.Time.UTC()
	}
	var b bytes.Buffer
	var err error
	if p.OS == windows {
		z := zip.NewWriter(&b)
		err = errors.Join(z.AddFS(files), z.Close())
	} else {
		z := gzip.NewWriter(&b)
		t := tar.NewWriter(z)
		err = errors.Join(t.AddFS(files), t.Close(), z.Close())
	}
	if err != nil {
		return fmt.Errorf("cannot pack %s: %w", r.folder(p), err)
	}

	return os.WriteFile(r.file(suffix(p)+packed), b.Bytes(), 0o644)
}

// suffix ends the names of a platform's files.
func suffix(p v1.Platform) string { return "_" + p.OS + "_" + p.Architecture }

// folder returns the archive's top folder.
func (r Release) folder(p v1.Platform) string { return Name + "_" + r.Version + suffix(p) }
