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

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// AnnotationHold is the mark of an object that this plugin holds. Crossplane copies the annotations
// of a claim to its XR, except those of Kubernetes, which it tells by the end of their domain
// (crossplane internal/controller/apiextensions/claim/object.go, withoutReservedK8sEntries). So
// what stands on a claim never gets onto its cluster-scoped XR, and the mark of an XR that was
// removed does not come back.
const AnnotationHold = "velero.crossplane.x-k8s.io/hold"

// KeySize is the least number of bytes that a Key has.
const KeySize = sha256.Size

// ErrForged is the error of a mark that this plugin did not write on this object, or that was
// changed since.
var ErrForged = errors.New("this plugin did not write it on this object, or somebody has changed it since")

// errCopied is ErrForged of a mark that says itself that it is that of another object, as when a
// function copies all annotations of an XR onto what it composes.
var errCopied = fmt.Errorf("it is that of another object: %w", ErrForged)

// Format is the newest format of marks that this version of the plugin reads, and the one that it
// writes, without saying so: it is the first (docs/formats.md).
const Format = 1

// ErrNewer is the error of a mark that a newer version of this plugin has written, of which this
// one can't know what it says.
var ErrNewer = errors.New("a newer version of this plugin has written it")

// HowToRead is what to do about a mark with ErrNewer.
const HowToRead = "install that version of the plugin again, or a later one"

// A Key signs the marks of holds and verifies them. Whoever may write an object can write a mark,
// and a mark has Crossplane let go, Secrets get owners and settings change. So the signature covers
// every byte of the mark and which object it is on: its group and kind, namespace and name. The UID
// is not part of it, lastSeen a mark is signed before the object is created. What somebody can do
// who keeps a genuine mark and writes it again is limited to that object.
//
// It is an HMAC and no record in Velero's namespace, since a record would cost a request for each
// held object, before that is created.
type Key []byte

// Unverified is the Key of those who only show what marks say: it accepts any mark and signs none.
var Unverified Key //nolint:gochecknoglobals // It is a constant.

// NewKey returns the Key that has the given bytes. It fails if they are too few.
func NewKey(b []byte) (Key, error) {
	if len(b) < KeySize {
		return nil, fmt.Errorf("cannot use a key of %d bytes to sign marks: it needs %d", len(b), KeySize)
	}

	return Key(b), nil
}

// Signed marks end with their signature: {"restore":…,"mac":"…"}.
const (
	macBegin = `,"mac":"`
	macEnd   = `"}`
)

// macSize is how many bytes a signature adds to a mark.
var macSize = len(macBegin) + base64.StdEncoding.EncodedLen(sha256.Size) //nolint:gochecknoglobals // It is a constant.

// mac returns the signature of a mark without one, on what r names.
func (k Key) mac(r xp.Ref, mark string) string {
	id := r.ID()
	h := hmac.New(sha256.New, k)
	// No field can hold a line feed, so nothing that is signed for one object is what is signed for
	// another.
	_, _ = fmt.Fprintf(h, "hold\n%s\n%s\n%s\n%s\n%s", id.Group, id.Kind, id.Namespace, id.Name, mark) // It never fails.

	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// mark returns the signed mark of a hold on what r names.
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

// encode returns the mark of a hold on what r names, without a signature.
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

// Sign signs the mark that Put has written on u, which will be in the given namespace when it is
// created. It does nothing if u has none.
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

// verify returns ErrForged if the mark of what r names was not signed with the key.
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

// HoldOf returns the hold that is on u; nil if there is none. It fails if the mark can't be read,
// and with ErrForged if it is not signed with the key.
func (k Key) HoldOf(u *unstructured.Unstructured) (*Hold, error) {
	h, err := packedHoldOf(u)
	if err != nil || h == nil {
		return h, err
	}
	if err := k.verify(xp.RefTo(u), xp.Annotation(u, AnnotationHold)); err != nil {
		return nil, fmt.Errorf("cannot use the annotation %s of %s: %w", AnnotationHold, xp.String(u), err)
	}

	if err := h.complete(u); err != nil { // Only now: what somebody else has packed can need much memory.
		return nil, err
	}

	return h, nil
}

// HoldsNothing reports whether an error of HoldOf is of a mark that was copied onto something which
// nothing pauses: nobody waits for that.
func HoldsNothing(u *unstructured.Unstructured, err error) bool {
	return errors.Is(err, errCopied) && !xp.IsPaused(u)
}

// HoldOf returns the hold that the mark on u says is on it; nil if there is none. Whoever can write
// u can have written the mark: only Key.HoldOf reports whether this plugin did. It fails if the
// mark can't be read. That of a namespaced object can't refer to anything outside of its namespace.
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

// packedHoldOf is HoldOf, without what the mark has packed.
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

// complete unpacks what the mark on u has packed.
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
	}

	return nil
}

// markedOf is what a mark calls the object that it is on. Its namespace may be another when it is
// restored, and its version when it is read.
func markedOf(u *unstructured.Unstructured) string {
	return u.GroupVersionKind().GroupKind().String() + "/" + u.GetName()
}

// readMark reads what a mark says. What it calls the Restore that put it on is looked up, and is
// part of commands that people copy: it must be what an API server can have, or be left out.
func readMark(mark string, into *Hold) error {
	err := json.Unmarshal([]byte(mark), into) // It reads what it can, also if it fails.
	if into.Format > Format {
		return fmt.Errorf("%w, in format %d; this one reads up to %d", ErrNewer, into.Format, Format)
	}
	if err != nil {
		return err //nolint:wrapcheck // HoldOf says of what.
	}
	if into.Restore != "" && !isRestore(into.Restore) {
		return fmt.Errorf("its Restore %q is no namespace and name of one, so this plugin has not written it", into.Restore)
	}

	return nil
}

// isRestore reports whether a string is the namespace/name of an object as Velero's Restores are
// called.
func isRestore(s string) bool {
	namespace, name, ok := strings.Cut(s, "/")

	return ok && len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(name)) == 0
}
