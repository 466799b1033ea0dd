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
	// maxPacked is how many bytes of a mark who manages an object can take, and maxUnpacked how
	// many that can be which somebody has packed.
	maxPacked   = 4 << 10
	maxUnpacked = 1 << 20
	// manyRefs is of how many objects a mark lists the references so that a person can read them.
	// Those of more are packed: an API server takes no more than 256 KiB of annotations.
	manyRefs = 500
	// maxUnpackedRefs is how many bytes the references can be that are packed. An API server takes
	// no object of more than 3 MiB, which has them in its spec.
	maxUnpackedRefs = 8 << 20
)

// errPacked is the error of a mark whose references can't be unpacked.
var errPacked = errors.New("what it has packed can't be read")

// composedRefs is what a mark packs of an XR that composes many objects.
type composedRefs struct {
	Refs               []xp.Ref            `json:"resourceRefs"`
	ComposedConditions []xp.TrueConditions `json:"well,omitempty"`
}

// packRefs moves the references of an XR that composes many objects to where a mark has them
// packed.
func (h *Hold) packRefs() error {
	if len(h.Refs) <= manyRefs {
		return nil
	}
	b, err := json.Marshal(composedRefs{Refs: h.Refs, ComposedConditions: h.ComposedConditions})
	if err != nil {
		return err //nolint:wrapcheck // encode says of what.
	}
	h.Composed, err = deflate(b)
	h.Refs, h.ComposedConditions = nil, nil

	return err
}

// unpackRefs undoes what packRefs did.
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

// deflate compresses what a mark is to have.
func deflate(b []byte) (string, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(b)
	if err := errors.Join(err, w.Close()); err != nil {
		return "", err
	}

	return base64.RawStdEncoding.EncodeToString(packed.Bytes()), nil
}

// inflate decodes what deflate has compressed, of at most so many bytes; it returns false if it
// can't.
func inflate(packed string, most int64, into any) bool {
	r, err := gzip.NewReader(base64.NewDecoder(base64.RawStdEncoding, strings.NewReader(packed)))

	return err == nil && json.NewDecoder(io.LimitReader(r, most)).Decode(into) == nil
}

// packManagers returns the managedFields of what is about to be created, as a mark has them: if
// nobody writes them back they can be taken from there. It returns "" if there are none, or if they
// are too many: then only the backup has them.
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

// unpackManagers returns what packManagers has packed; none if that can't be read.
func unpackManagers(packed string) []map[string]any {
	var entries []map[string]any
	if !inflate(packed, maxUnpacked, &entries) {
		return nil
	}

	return entries
}

// ForgetsManagers reports whether nobody can tell any more who manages what of u, when its hold is
// lifted: a restore was stopped before it had written that back, and the mark does not have it.
func ForgetsManagers(u *unstructured.Unstructured) bool {
	h, err := HoldOf(u)

	return IsStray(u) && (err != nil || h == nil || len(unpackManagers(h.Fields)) == 0)
}
