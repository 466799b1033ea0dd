package hold

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	// maxPacked is how many bytes of a mark the managedFields may use. maxUnpacked is how many they
	// may have unpacked: any user can make entries of two bytes, which take a hundred in memory.
	maxPacked   = 4 << 10
	maxUnpacked = 128 << 10
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
func (h *Hold) packRefs() (err error) {
	if len(h.Refs) <= manyRefs {
		return nil
	}
	if len(h.Refs) > xp.MostRefs {
		return fmt.Errorf("a mark has at most %d references", xp.MostRefs)
	}
	h.Composed, err = deflate(composedRefs{Refs: h.Refs, ComposedConditions: h.ComposedConditions})
	h.Refs, h.ComposedConditions = nil, nil

	return err
}

// unpackRefs is the reverse of packRefs. It decodes into arrays, which bound the memory: a few bytes
// can unpack to millions of entries.
func (h *Hold) unpackRefs() error {
	if h.Composed == "" {
		return nil
	}
	var c struct {
		Refs       [xp.MostRefs]xp.Ref             `json:"resourceRefs"`
		Conditions *[xp.MostRefs]xp.TrueConditions `json:"composedConditions"`
	}
	if err := inflate(h.Composed, maxUnpackedRefs, &c); err != nil || c.Refs[0] == (xp.Ref{}) || len(h.Refs) > 0 {
		return errPacked
	}
	n := len(c.Refs)
	for c.Refs[n-1] == (xp.Ref{}) {
		n--
	}
	h.Refs, h.ComposedConditions, h.Composed = slices.Clone(c.Refs[:n]), nil, ""
	if c.Conditions != nil {
		h.ComposedConditions = slices.Clone(c.Conditions[:n])
	}

	return nil
}

// deflate packs a value for a mark.
func deflate(value any) (string, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	err := json.NewEncoder(w).Encode(value)
	if err := errors.Join(err, w.Close()); err != nil {
		return "", err
	}

	return base64.RawStdEncoding.EncodeToString(packed.Bytes()), nil
}

// inflate is the reverse of deflate. It reads at most that many unpacked bytes.
func inflate(packed string, most int64, into any) error {
	z, err := gzip.NewReader(base64.NewDecoder(base64.RawStdEncoding, strings.NewReader(packed)))
	if err != nil {
		return err //nolint:wrapcheck // The callers have an error of their own.
	}

	return json.NewDecoder(io.LimitReader(z, most)).Decode(into) //nolint:wrapcheck // As above.
}

// packManagers returns the managedFields of an object that is about to be created, packed for its
// mark, in case Velero does not write them. It returns "" if there are none, or too many: then only
// the backup has them.
func packManagers(u *unstructured.Unstructured) string {
	entries := slices.DeleteFunc(entriesOf(u), func(m map[string]any) bool { return isOwn(m) || len(m) == 0 })
	if len(entries) == 0 {
		return ""
	}
	packed, err := deflate(entries)
	if err != nil || len(packed) > maxPacked || unpackManagers(packed) == nil {
		return ""
	}

	return packed
}

// unpackManagers is the reverse of packManagers; nil if it fails.
func unpackManagers(packed string) []map[string]any {
	var entries []map[string]any
	if inflate(packed, maxUnpacked, &entries) != nil {
		return nil
	}

	return entries
}

// ForgetsManagers reports whether the managers of u will be unknown when its hold is lifted: the
// restore was stopped before it wrote managedFields, and the mark does not have them.
func ForgetsManagers(u *unstructured.Unstructured) bool {
	h, err := Of(u)

	return IsStray(u) && (err != nil || h == nil || len(unpackManagers(h.Fields)) == 0)
}
