package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
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
	if err := WriteTar(&b, dir, "", at); err != nil {
		return fmt.Errorf("cannot write %s: %w", file, err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
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
	if err != nil {
		return Size{}, fmt.Errorf("cannot measure the image: %w", err)
	}
	s := Size{Platform: config.Platform().String()}
	manifest, err := image.Manifest()
	if err != nil {
		return s, fmt.Errorf("cannot measure the image: %w", err)
	}
	s.Pulled = manifest.Config.Size
	layers, err := image.Layers()
	if err != nil {
		return s, fmt.Errorf("cannot measure the image: %w", err)
	}
	for i, layer := range layers {
		s.Pulled += manifest.Layers[i].Size
		n, err := uncompressed(layer)
		if err != nil {
			return s, fmt.Errorf("cannot measure a layer of the image: %w", err)
		}
		s.Unpacked += n
	}

	return s, nil
}

func uncompressed(layer v1.Layer) (n int64, err error) {
	r, err := layer.Uncompressed()
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }()

	return io.Copy(io.Discard, r)
}
