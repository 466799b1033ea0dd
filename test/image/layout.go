package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing/fstest"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// refName is the annotation by which tools find an image in a layout (OCI image specification,
// annotations).
const refName = "org.opencontainers.image.ref.name"

// createdAt is the annotation with the time of an image, which Artifact Hub requires on an index.
const createdAt = "org.opencontainers.image.created"

// WriteLayout writes the images of some platforms as one index, as an OCI layout, over the old
// contents of a folder. Tools find it by the name. The index has the labels of the images as
// annotations, because tools that list images read only the index.
func WriteLayout(images []v1.Image, dir, name string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	annotations := map[string]string{}
	for _, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			return fmt.Errorf("cannot read the image's configuration: %w", err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: config.Platform()}})
		maps.Copy(annotations, config.Config.Labels)
		annotations[createdAt] = config.Created.UTC().Format(time.RFC3339)
	}
	index, ok := mutate.Annotations(index, annotations).(v1.ImageIndex)
	if !ok {
		return errors.New("cannot annotate the index of the images")
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("cannot remove the older image: %w", err)
	}
	path, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = path.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: name}))
	}
	if err != nil {
		return fmt.Errorf("cannot write the image to %s: %w", dir, err)
	}

	return nil
}

// WriteArchive writes the images as the tar file of an OCI layout, which container engines and
// registry tools read.
func WriteArchive(images []v1.Image, file, name string, at time.Time) error {
	dir, err := os.MkdirTemp(filepath.Dir(file), ".layout-")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", file, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := WriteLayout(images, dir, name); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := errors.Join(writeTar(&b, dir, at), os.WriteFile(file, b.Bytes(), 0o644)); err != nil {
		return fmt.Errorf("cannot write %s: %w", file, err)
	}

	return nil
}

// A Size is the size of an image for one platform, in bytes.
type Size struct {
	Platform string
	// Pulled is the size of the download, and Unpacked the size on the node's disk.
	Pulled, Unpacked int64
}

// SizeOf measures an image.
func SizeOf(image v1.Image) (Size, error) {
	config, err := image.ConfigFile()
	manifest, manifestErr := image.Manifest()
	if err := errors.Join(err, manifestErr); err != nil {
		return Size{}, fmt.Errorf("cannot measure the image: %w", err)
	}
	s := Size{Platform: config.Platform().String(), Pulled: manifest.Config.Size}
	for _, layer := range manifest.Layers {
		s.Pulled += layer.Size
	}
	files := mutate.Extract(image)
	s.Unpacked, err = io.Copy(io.Discard, files)

	return s, errors.Join(err, files.Close())
}

// layerOf returns a layer with all files of a folder.
func layerOf(root string, created time.Time, by string) (mutate.Addendum, error) {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		var b bytes.Buffer
		err := writeTar(&b, root, created)

		return io.NopCloser(&b), err
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching)
	if err != nil {
		return mutate.Addendum{}, fmt.Errorf("cannot make a layer: %w", err)
	}

	return mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: created}, CreatedBy: by}}, nil
}

// writeTar writes a folder as a tar file that depends only on the files: sorted by name, owned by
// root, with the given time, and readable for all users.
func writeTar(w io.Writer, root string, at time.Time) error {
	files := fstest.MapFS{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f := &fstest.MapFile{Mode: fs.ModeDir | 0o755, ModTime: at.UTC()}
		if !d.IsDir() {
			if !d.Type().IsRegular() {
				return fmt.Errorf("cannot archive %s: it is neither a file nor a folder", name)
			}
			f.Mode = 0o644
			if info.Mode()&0o111 != 0 {
				f.Mode |= 0o111
			}
			f.Data, err = os.ReadFile(name) //nolint:gosec // The folder is one that we have made.
		}
		rel, _ := filepath.Rel(root, name) // It is below the root.
		files[filepath.ToSlash(rel)] = f

		return err
	})
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)

	return errors.Join(t.AddFS(files), t.Close())
}
