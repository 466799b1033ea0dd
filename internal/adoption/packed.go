package adoption

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// maxPacked is how many bytes of a mark who manages an object can take, and maxUnpacked how many that can be which somebody has packed.
	maxPacked   = 4 << 10
	maxUnpacked = 1 << 20
)

// packManagers returns the managedFields of what is about to be created, as a mark has them: if nobody writes them back they can be taken from there. It
// returns "" if there are none, or if they are too many: then only the backup has them.
func packManagers(u *unstructured.Unstructured) string {
	entries := slices.DeleteFunc(entriesOf(u), func(m map[string]any) bool { return isOwn(m) || len(m) == 0 })
	if len(entries) == 0 {
		return ""
	}
	list, err := json.Marshal(entries)
	if err != nil {
		return ""
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err = w.Write(list)
	if err = errors.Join(err, w.Close()); err != nil || base64.RawStdEncoding.EncodedLen(b.Len()) > maxPacked {
		return ""
	}

	return base64.RawStdEncoding.EncodeToString(b.Bytes())
}

// unpackManagers returns what packManagers has packed; none if that can't be read.
func unpackManagers(packed string) []map[string]any {
	r, err := gzip.NewReader(base64.NewDecoder(base64.RawStdEncoding, bytes.NewReader([]byte(packed))))
	if err != nil {
		return nil
	}
	var entries []map[string]any
	if err := json.NewDecoder(io.LimitReader(r, maxUnpacked)).Decode(&entries); err != nil {
		return nil
	}

	return entries
}

// ForgetsManagers tells whether nobody can tell any more who manages what of u, when its hold is lifted: a restore was stopped before it had written that back,
// and the mark does not have it.
func ForgetsManagers(u *unstructured.Unstructured) bool {
	h, err := HoldOf(u)

	return IsStray(u) && (err != nil || h == nil || len(unpackManagers(h.Fields)) == 0)
}
