package adoption

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	// maxPacked is how many bytes of a mark the managedFields may use. maxUnpacked is how many they
	// may have unpacked, since any user can write a mark.
	maxPacked   = 4 << 10
	maxUnpacked = 1 << 20
	// manyRefs is the number of references up to which a mark lists them readably. More are packed:
	// the API server allows 256 KiB of annotations.
	manyRefs = 500
	// maxUnpackedRefs is how many bytes packed references may have unpacked. The API server allows
	// objects of 3 MiB, which have these references in their spec.
	maxUnpackedRefs = 8 << 20
)

var errPacked = errors.New("what it has packed can't be read")

// composedRefs is the packed part of the mark of an XR that composes many objects.
type composedRefs struct {
	Refs               []xp.Ref            `json:"resourceRefs"`
	ComposedConditions []xp.TrueConditions `json:"composedConditions,omitempty"`
}

// packRefs packs the references of an XR that composes many objects.
func (h *Hold) packRefs() error {
	if len(h.Refs) <= manyRefs {
		return nil
	}
	b, err := json.Marshal(composedRefs{Refs: h.Refs, ComposedConditions: h.ComposedConditions})
	if err != nil {
		return err //nolint:wrapcheck // encode adds the object.
	}
	h.Composed, err = deflate(b)
	h.Refs, h.ComposedConditions = nil, nil

	return err
}

func (h *Hold) unpackRefs() error {
	if h.Composed == "" {
		return nil
	}
	var c composedRefs
	if !inflate(h.Composed, maxUnpackedRefs, &c) || len(c.Refs) == 0 || len(h.Refs) > 0 {
		return errPacked
	}
	h.Refs, h.ComposedConditions, h.Composed = c.Refs, c.ComposedConditions, ""

	return nil
}

func deflate(b []byte) (string, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(b)
	if err := errors.Join(err, w.Close()); err != nil {
		return "", err
	}

	return base64.RawStdEncoding.EncodeToString(packed.Bytes()), nil
}

// inflate decodes what deflate compressed; false if it fails or exceeds most bytes.
func inflate(packed string, most int64, into any) bool {
	r, err := gzip.NewReader(base64.NewDecoder(base64.RawStdEncoding, strings.NewReader(packed)))

	return err == nil && json.NewDecoder(io.LimitReader(r, most)).Decode(into) == nil
}

// packManagers returns the managedFields of an object that is about to be created, packed for its
// mark, in case Velero does not write them. It returns "" if there are none, or too many: then only
// the backup has them.
func packManagers(u *unstructured.Unstructured) string {
	entries := slices.DeleteFunc(entriesOf(u), func(m map[string]any) bool { return isOwn(m) || len(m) == 0 })
	if len(entries) == 0 {
		return ""
	}
	list, err := json.Marshal(entries)
	if err != nil {
		return ""
	}
	packed, err := deflate(list)
	if err != nil || len(packed) > maxPacked {
		return ""
	}

	return packed
}

// unpackManagers is the reverse of packManagers; nil if it fails.
func unpackManagers(packed string) []map[string]any {
	var entries []map[string]any
	if !inflate(packed, maxUnpacked, &entries) {
		return nil
	}

	return entries
}

// ForgetsManagers reports whether the managers of u will be unknown when its hold is lifted: the
// restore was stopped before it wrote managedFields, and the mark does not have them.
func ForgetsManagers(u *unstructured.Unstructured) bool {
	h, err := HoldOf(u)

	return IsStray(u) && (err != nil || h == nil || len(unpackManagers(h.Fields)) == 0)
}
