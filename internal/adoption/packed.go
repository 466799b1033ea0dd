package adoption

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
	// maxUnpackedValue is how many bytes of these each reference may have. A namespace and three
	// names have less than 1 KiB.
	maxUnpackedValue = 16 << 10
)

var (
	errPacked   = errors.New("what it has packed can't be read")
	errManyRefs = fmt.Errorf("a mark has at most %d references", xp.MostRefs)
)

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
	if len(h.Refs) > xp.MostRefs {
		return errManyRefs
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
	c, err := readComposed(h.Composed)
	if err != nil || len(c.Refs) == 0 || len(h.Refs) > 0 {
		return errPacked
	}
	h.Refs, h.ComposedConditions, h.Composed = c.Refs, c.ComposedConditions, ""

	return nil
}

// readComposed reads what packRefs has packed, one reference after the other: a few bytes can
// unpack to millions of them.
func readComposed(packed string) (c composedRefs, err error) {
	z, err := gzip.NewReader(base64.NewDecoder(base64.RawStdEncoding, strings.NewReader(packed)))
	if err != nil {
		return c, err //nolint:wrapcheck // The caller has an error of its own.
	}
	v := &values{from: io.LimitReader(z, maxUnpackedRefs)}
	v.Decoder = json.NewDecoder(v)
	err = v.begin('{')
	for err == nil && v.More() {
		var field json.Token
		switch field, err = v.token(); {
		case err != nil:
		case field == "resourceRefs":
			c.Refs, err = listOf[xp.Ref](v)
		case field == "composedConditions":
			c.ComposedConditions, err = listOf[xp.TrueConditions](v)
		default:
			err = v.next(&json.RawMessage{})
		}
	}

	return c, err
}

// values decodes JSON value by value, of at most maxUnpackedValue bytes each.
type values struct {
	*json.Decoder

	from io.Reader
	// left is how many bytes the current value may still read.
	left int
}

// Read reads for the decoder.
func (v *values) Read(p []byte) (int, error) {
	n, err := v.from.Read(p[:min(len(p), v.left)])
	if v.left -= n; v.left == 0 && err == nil {
		err = io.ErrUnexpectedEOF
	}

	return n, err // A decoder needs io.EOF as it is.
}

func (v *values) token() (json.Token, error) {
	v.left = maxUnpackedValue

	return v.Token() //nolint:wrapcheck // The caller has an error of its own.
}

func (v *values) next(into any) error {
	v.left = maxUnpackedValue

	return v.Decode(into) //nolint:wrapcheck // The caller has an error of its own.
}

func (v *values) begin(with json.Delim) error {
	t, err := v.token()
	if err == nil && t != with {
		err = errPacked
	}

	return err
}

// listOf reads a list of at most xp.MostRefs entries.
func listOf[T any](v *values) ([]T, error) {
	var list []T
	err := v.begin('[')
	for err == nil && v.More() {
		if len(list) == xp.MostRefs {
			return nil, errManyRefs
		}
		var entry T
		err = v.next(&entry)
		list = append(list, entry)
	}
	if err == nil {
		_, err = v.token() // The end of the list.
	}

	return list, err
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

// packManagers returns the managedFields of an object that is about to be created, packed for its
// mark, in case Velero does not write them. It returns "" if there are none, or too many: then only
// the backup has them.
func packManagers(u *unstructured.Unstructured) string {
	entries := slices.DeleteFunc(entriesOf(u), func(m map[string]any) bool { return isOwn(m) || len(m) == 0 })
	if len(entries) == 0 {
		return ""
	}
	list, err := json.Marshal(entries)
	if err != nil || len(list) > maxUnpacked {
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
	z, err := gzip.NewReader(base64.NewDecoder(base64.RawStdEncoding, strings.NewReader(packed)))
	if err != nil || json.NewDecoder(io.LimitReader(z, maxUnpacked)).Decode(&entries) != nil {
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
