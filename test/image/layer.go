package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layerOf returns a layer with all files of a folder.
func layerOf(root string, created time.Time, by string) (mutate.Addendum, error) {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		var b bytes.Buffer
		err := WriteTar(&b, root, "", created)

		return io.NopCloser(&b), err
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching)
	if err != nil {
		return mutate.Addendum{}, fmt.Errorf("cannot make a layer: %w", err)
	}

	return mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: created}, CreatedBy: by}}, nil
}

// WriteTar writes a folder as a tar file that depends only on the files: sorted by name, owned by
// root, with the given time, and readable for all users. The names get the prefix.
func WriteTar(w io.Writer, root, prefix string, at time.Time) error {
	t := tar.NewWriter(w)
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		header := &tar.Header{Name: prefix + filepath.ToSlash(rel), ModTime: at.UTC().Truncate(time.Second), Format: tar.FormatPAX}
		switch {
		case d.IsDir():
			header.Typeflag, header.Mode = tar.TypeDir, 0o755
			header.Name += "/"

			return t.WriteHeader(header)
		case info.Mode().IsRegular():
			header.Typeflag, header.Mode, header.Size = tar.TypeReg, 0o644, info.Size()
			if info.Mode()&0o111 != 0 {
				header.Mode = 0o755
			}

			return writeFile(t, header, name)
		default:
			return fmt.Errorf("cannot archive %s: it is neither a file nor a folder", name)
		}
	})
	if err != nil {
		return err
	}

	return t.Close()
}

func writeFile(t *tar.Writer, header *tar.Header, name string) error {
	if err := t.WriteHeader(header); err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(t, f)

	return err
}
