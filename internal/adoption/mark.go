package adoption

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

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
// since that is the first, leaves the number out (docs/formats.md).
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

// HoldOf returns the hold on u; nil if u has no mark. It fails if the mark can't be read, and with
// ErrForged if it is not signed with the key.
func (k Key) HoldOf(u *unstructured.Unstructured) (*Hold, error) {
	h, err := packedHoldOf(u)
	if err != nil || h == nil {
		return h, err
	}
	if err := k.verify(xp.RefTo(u), xp.Annotation(u, AnnotationHold)); err != nil {
		return nil, fmt.Errorf("cannot use the annotation %s of %s: %w", AnnotationHold, xp.String(u), err)
	}

	if err := h.complete(u); err != nil { // Only a verified mark is unpacked: a forged one can need much memory.
		return nil, err
	}

	return h, nil
}

// HoldsNothing reports whether an error of HoldOf is of a mark that was copied onto an object which
// is not paused. Such a mark needs no action.
func HoldsNothing(u *unstructured.Unstructured, err error) bool {
	return errors.Is(err, errCopied) && !xp.IsPaused(u)
}

// HoldOf returns the hold in the mark of u; nil if u has no mark. It does not verify the mark: use
// Key.HoldOf before acting on it. It fails if the mark can't be read. References in the mark of a
// namespaced object stay within its namespace.
func HoldOf(u *unstructured.Unstructured) (*Hold, error) {
	h, err := packedHoldOf(u)
	if err != nil || h == nil {
		return h, err
	}
	if err := h.complete(u); err != nil {
		return nil, err
	}

	return h, nil
}

// packedHoldOf is HoldOf without unpacking.
func packedHoldOf(u *unstructured.Unstructured) (*Hold, error) {
	if !xp.HasAnnotation(u, AnnotationHold) {
		return nil, nil //nolint:nilnil // No hold is no error.
	}
	h := &Hold{}
	if err := readMark(xp.Annotation(u, AnnotationHold), h); err != nil {
		return nil, fmt.Errorf("cannot read the annotation %s of %s: %w", AnnotationHold, xp.String(u), err)
	}
	if h.Of != "" && h.Of != markedOf(u) {
		return nil, fmt.Errorf("cannot use the annotation %s of %s: %w", AnnotationHold, xp.String(u), errCopied)
	}

	return h, nil
}

// complete unpacks the packed parts of the mark on u.
func (h *Hold) complete(u *unstructured.Unstructured) error {
	if err := h.unpackRefs(); err != nil {
		return fmt.Errorf("cannot read the annotation %s of %s: %w", AnnotationHold, xp.String(u), err)
	}
	if u.GetNamespace() != "" {
		for i := range h.Refs {
			h.Refs[i].Namespace = u.GetNamespace()
		}
		for i := range h.Inputs {
			if !h.Inputs[i].isRelease() { // A release can be in another namespace than its Release.
				h.Inputs[i].Namespace = u.GetNamespace()
			}
		}
		if h.Stored != nil {
			h.Stored.Namespace = u.GetNamespace()
		}
		if h.Owner != nil && h.Owner.Namespace != "" { // An XR can be cluster-scoped.
			h.Owner.Namespace = u.GetNamespace()
		}
	}

	return nil
}

// markedOf returns the identity of u in its mark. It leaves out the namespace, which a restore can
// map, and the version, which depends on the reader.
func markedOf(u *unstructured.Unstructured) string {
	return u.GroupVersionKind().GroupKind().String() + "/" + u.GetName()
}

// readMark decodes a mark. The name of its Restore is looked up and becomes part of commands that
// users copy, so it must be a valid name or empty.
func readMark(mark string, into *Hold) error {
	err := json.Unmarshal([]byte(mark), into) // It decodes what it can even if it fails.
	if into.Format > Format {
		return fmt.Errorf("%w, in format %d; this one reads up to %d", ErrNewer, into.Format, Format)
	}
	if err != nil {
		return err //nolint:wrapcheck // HoldOf adds the object.
	}
	if into.Restore != "" && !isRestore(into.Restore) {
		return fmt.Errorf("its Restore %q is no namespace and name of one, so this plugin has not written it", into.Restore)
	}

	return nil
}

func isRestore(s string) bool {
	namespace, name, ok := strings.Cut(s, "/")

	return ok && len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(name)) == 0
}
