package adoption

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// AnnotationHold is the mark: the annotation that stores the hold. Crossplane copies the
// annotations of a claim to its XR, except those of Kubernetes, which it detects by the end of
// their domain (crossplane internal/controller/apiextensions/claim/object.go,
// withoutReservedK8sEntries). So a claim's mark never gets onto its cluster-scoped XR, and a
// removed mark of an XR does not come back.
const AnnotationHold = "velero.crossplane.x-k8s.io/hold"

// KeySize is the smallest number of bytes of a Key.
const KeySize = sha256.Size

// ErrForged is the error of a mark that this plugin did not write on this object, or that was
// changed since.
var ErrForged = reason.MarkForged.Errorf("this plugin did not write it on this object, or another writer has changed it since")

// errCopied is ErrForged of a mark that names another object: a function can copy all annotations
// of an XR to its composed resources.
var errCopied = fmt.Errorf("it is that of another object: %w", ErrForged)

// Format is the newest format of marks that this version reads. It writes the same format and,
// since that is the first, leaves the number out (docs/dev/architecture.md).
const Format = 1

// ErrNewer is the error of a mark in a newer format, which this version can't interpret.
var ErrNewer = reason.MarkNewer.Errorf("a newer version of this plugin has written it")

// HowToRead is the next step for ErrNewer.
const HowToRead = "install that version of the plugin again, or a later one"

// A Key signs and verifies the marks of holds. A user who can write an object can write a mark, and
// a mark makes this plugin release objects, give Secrets owners and change settings. So the
// signature covers every byte of the mark, and the object's group, kind, namespace and name. It
// does not cover the UID, since a mark is signed before the object is created. A user can write an
// old, genuine mark again, but only on the same object.
//
// It is an HMAC and not a record in Velero's namespace: a record costs a request per held object,
// before the object is created.
type Key []byte

// Unverified is the Key for reading marks only: it accepts any mark and signs none.
var Unverified Key //nolint:gochecknoglobals // It is a constant.

// NewKey returns the Key with the given bytes. It fails if they are fewer than KeySize.
func NewKey(b []byte) (Key, error) {
	if len(b) < KeySize {
		return nil, fmt.Errorf("cannot use a key of %d bytes to sign marks: it needs %d", len(b), KeySize)
	}

	return Key(b), nil
}

// A signed mark ends with its signature: {"restore":…,"mac":"…"}.
const (
	macBegin = `,"mac":"`
	macEnd   = `"}`
)

// macSize is how many bytes a signature adds to a mark.
var macSize = len(macBegin) + base64.StdEncoding.EncodedLen(sha256.Size) //nolint:gochecknoglobals // It is a constant.

// mac returns the signature of an unsigned mark on r.
func (k Key) mac(r xp.Ref, mark string) string {
	id := r.ID()
	h := hmac.New(sha256.New, k)
	// No field can contain a line feed, so two objects never have the same signed text.
	_, _ = fmt.Fprintf(h, "hold\n%s\n%s\n%s\n%s\n%s", id.Group, id.Kind, id.Namespace, id.Name, mark) // It never fails.

	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// mark returns the signed mark of a hold on r.
func (k Key) mark(r xp.Ref, h *Hold) (string, error) {
	b, err := h.encode(r)
	if err != nil {
		return "", err
	}
	if k == nil {
		return string(b), nil
	}

	return strings.TrimSuffix(string(b), "}") + macBegin + k.mac(r, string(b)) + macEnd, nil
}

// encode returns the unsigned mark of a hold on r.
func (h *Hold) encode(r xp.Ref) ([]byte, error) {
	short := *h
	short.Reason = reason.Clean(short.Reason)
	if err := short.packRefs(); err != nil {
		return nil, fmt.Errorf("cannot encode the hold of %s: %w", r, err)
	}
	b, err := json.Marshal(short)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the hold of %s: %w", r, err)
	}

	return b, nil
}

// Sign signs the mark that Put has written on u, for the namespace in which u will be created. It
// does nothing if u has no mark.
func (k Key) Sign(u *unstructured.Unstructured, namespace string) error {
	if !xp.HasAnnotation(u, AnnotationHold) {
		return nil
	}
	h := &Hold{}
	if err := json.Unmarshal([]byte(xp.Annotation(u, AnnotationHold)), h); err != nil {
		return fmt.Errorf("cannot read the annotation %s of %s: %w", AnnotationHold, xp.String(u), err)
	}
	r := xp.RefTo(u)
	r.Namespace = namespace
	mark, err := k.mark(r, h)
	if err != nil {
		return err
	}
	xp.Annotate(u, AnnotationHold, mark)

	return nil
}

// verify returns ErrForged if the mark on r is not signed with the key.
func (k Key) verify(r xp.Ref, mark string) error {
	if k == nil {
		return nil
	}
	signed, ok := strings.CutSuffix(mark, macEnd)
	n := strings.LastIndex(signed, macBegin)
	if !ok || n < 0 {
		return ErrForged
	}
	if !hmac.Equal([]byte(signed[n+len(macBegin):]), []byte(k.mac(r, signed[:n]+"}"))) {
		return ErrForged
	}

	return nil
}
