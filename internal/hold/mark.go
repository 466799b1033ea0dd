package hold

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Annotation is the mark: the annotation that stores the hold. Crossplane copies a claim's
// annotations to its XR, except those of Kubernetes, which it knows by the end of their domain
// (crossplane internal/controller/apiextensions/claim/object.go, withoutReservedK8sEntries). So a
// claim's mark never gets onto its XR, and a removed mark of an XR does not come back.
const Annotation = "velero.crossplane.x-k8s.io/hold"

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

// mostValues is how many lists, objects and entries of these a mark may have beside what it has
// packed. One with manyRefs references has about 3,500. Anyone can write a mark, and each entry of
// two bytes takes a hundred in memory.
const mostValues = 8192

var errTooLarge = errors.New("it is larger than any that this plugin writes")

// A Key signs and verifies the marks of holds. A user who can write an object can write a mark, and
// a mark makes this plugin release objects, give Secrets owners and change settings. So the
// signature covers every byte of the mark, and the object's group, kind, namespace and name; not
// the UID, since a mark is signed before the object is created. A user can write an old, genuine
// mark again, but only on the same object. A record in Velero's namespace in place of the signature
// would cost a request per held object.
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
func (k Key) mark(r xp.Ref, h *Hold) string {
	mark := h.encode()
	if k == nil {
		return mark
	}

	return strings.TrimSuffix(mark, "}") + macBegin + k.mac(r, mark) + macEnd
}

// encode returns the unsigned mark of a hold.
func (h *Hold) encode() string {
	short := *h
	short.Reason = reason.Clean(short.Reason)
	err := short.packRefs()
	b, encodeErr := json.Marshal(short)
	if err = errors.Join(err, encodeErr); err != nil {
		panic(err) // Its fields can always be encoded, and no XR is held that has more references than can be packed.
	}

	return string(b)
}

// Sign signs the mark that Put has written on u, for the namespace in which u will be created. It
// does nothing if u has no mark.
func (k Key) Sign(u *unstructured.Unstructured, namespace string) error {
	if !xp.HasAnnotation(u, Annotation) {
		return nil
	}
	h := &Hold{}
	if err := json.Unmarshal([]byte(xp.Annotation(u, Annotation)), h); err != nil {
		return fmt.Errorf("cannot read the annotation %s of %s: %w", Annotation, xp.String(u), err)
	}
	r := xp.RefTo(u)
	r.Namespace = namespace
	xp.Annotate(u, Annotation, k.mark(r, h))

	return nil
}

// Verify returns ErrForged if the mark on r is not signed with the key.
func (k Key) Verify(r xp.Ref, mark string) error {
	if k == nil {
		return nil
	}
	signed, ok := strings.CutSuffix(mark, macEnd)
	n := strings.LastIndex(signed, macBegin)
	if !ok || n < 0 || !hmac.Equal([]byte(signed[n+len(macBegin):]), []byte(k.mac(r, signed[:n]+"}"))) {
		return ErrForged
	}

	return nil
}

// HoldOf returns the hold on u; nil if u has no mark. It fails if the mark can't be read, and with
// ErrForged if it is not signed with the key. A mark is verified before it is decoded or unpacked.
func (k Key) HoldOf(u *unstructured.Unstructured) (*Hold, error) {
	return read(u, func(mark string) (*Hold, error) {
		if err := k.Verify(xp.RefTo(u), mark); err != nil {
			return nil, err
		}
		h, err := decodeMark(mark)
		if err == nil {
			err = h.unpackRefs()
		}

		return h, err
	})
}

// HoldsNothing reports whether an error of HoldOf is of a mark that was copied onto an object which
// is not paused. Such a mark needs no action.
func HoldsNothing(u *unstructured.Unstructured, err error) bool {
	return errors.Is(err, errCopied) && !xp.IsPaused(u)
}

// Of returns the hold in the mark of u, nil if u has no mark. It neither verifies the mark (use
// Key.HoldOf before acting on it), nor unpacks the references of an XR that composes many. It fails
// if the mark can't be read.
func Of(u *unstructured.Unstructured) (*Hold, error) { return read(u, decodeMark) }

// read reads the mark of u with the function, nil if u has none. References in the mark of a
// namespaced object stay within its namespace.
func read(u *unstructured.Unstructured, decode func(mark string) (*Hold, error)) (*Hold, error) {
	if !xp.HasAnnotation(u, Annotation) {
		return nil, nil //nolint:nilnil // No hold is no error.
	}
	mark := xp.Annotation(u, Annotation)
	of, err := checkMark(mark)
	if err == nil && of != "" && of != markedOf(u) {
		err = errCopied
	}
	var h *Hold
	if err == nil {
		h, err = decode(mark)
	}
	switch {
	case errors.Is(err, ErrForged):
		return nil, fmt.Errorf("cannot use the annotation %s of %s: %w", Annotation, xp.String(u), err)
	case err != nil:
		return nil, fmt.Errorf("cannot read the annotation %s of %s: %w", Annotation, xp.String(u), err)
	}
	h.stayIn(u.GetNamespace())

	return h, nil
}

// checkMark returns the object that a mark is for. It fails if the mark can't be read, or has a
// newer format. It allocates next to nothing, whatever is in the mark.
func checkMark(mark string) (of string, err error) {
	var header struct {
		Format int    `json:"format"`
		Of     string `json:"of"`
	}
	err = json.Unmarshal([]byte(mark), &header) // It decodes what it can even if it fails.
	if header.Format > Format {
		return "", fmt.Errorf("%w, in format %d; this one reads up to %d", ErrNewer, header.Format, Format)
	}

	return header.Of, err //nolint:wrapcheck // read adds the object.
}

// stayIn moves references into the namespace of the held object, unless that is "".
func (h *Hold) stayIn(namespace string) {
	if namespace == "" {
		return
	}
	for i := range h.Refs {
		h.Refs[i].Namespace = namespace
	}
	for i := range h.Inputs {
		if !xp.IsStateSecret(h.Inputs[i].Name) { // A state can be in another namespace than its MR.
			h.Inputs[i].Namespace = namespace
		}
	}
	if h.Owner != nil && h.Owner.Namespace != "" { // An XR can be cluster-scoped.
		h.Owner.Namespace = namespace
	}
	if h.FromUID != nil && h.FromUID.XR.Namespace != "" {
		h.FromUID.XR.Namespace = namespace
	}
}

// markedOf returns the identity of u in its mark. It leaves out the namespace, which a restore can
// map, and the version, which depends on the reader.
func markedOf(u *unstructured.Unstructured) string {
	return u.GroupVersionKind().GroupKind().String() + "/" + u.GetName()
}

// isTooLarge reports whether a mark has more than an API server stores in annotations, or more
// values than this plugin writes.
func isTooLarge(mark string) bool {
	return len(mark) > apivalidation.TotalAnnotationSizeLimitB || strings.Count(mark, ",")+strings.Count(mark, "[")+strings.Count(mark, "{") > mostValues
}

// decodeMark decodes a mark, but not what it has packed. The name of its Restore is looked up and
// becomes part of commands that users copy, so it must be a valid name or empty.
func decodeMark(mark string) (*Hold, error) {
	if isTooLarge(mark) {
		return nil, errTooLarge
	}
	h := &Hold{}
	if err := json.Unmarshal([]byte(mark), h); err != nil {
		return nil, err //nolint:wrapcheck // read adds the object.
	}
	namespace, name, _ := strings.Cut(h.Restore, "/")
	if h.Restore != "" && (len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0) {
		return nil, fmt.Errorf("its Restore %q is no namespace and name of one, so this plugin has not written it", h.Restore)
	}

	return h, nil
}
