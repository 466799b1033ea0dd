package adoption

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// mostValues is how many lists, objects and entries of these a mark may have beside what it has
// packed. One with manyRefs references has about 3,500. Anyone can write a mark, and each entry of
// two bytes takes a hundred in memory.
const mostValues = 8192

var errTooLarge = errors.New("it is larger than any that this plugin writes")

// HoldOf returns the hold on u; nil if u has no mark. It fails if the mark can't be read, and with
// ErrForged if it is not signed with the key. A mark is verified before it is decoded or unpacked.
func (k Key) HoldOf(u *unstructured.Unstructured) (*Hold, error) {
	return read(u, func(mark string) (*Hold, error) {
		if err := k.verify(xp.RefTo(u), mark); err != nil {
			return nil, fmt.Errorf("cannot use the annotation %s of %s: %w", AnnotationHold, xp.String(u), err)
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

// HoldOf returns the hold in the mark of u, nil if u has no mark, without the references of an XR
// that composes many: these stay packed. It does not verify the mark: use Key.HoldOf before acting
// on it. It fails if the mark can't be read.
func HoldOf(u *unstructured.Unstructured) (*Hold, error) { return read(u, decodeMark) }

// read reads the mark of u with the function, nil if u has none. References in the mark of a
// namespaced object stay within its namespace.
func read(u *unstructured.Unstructured, decode func(mark string) (*Hold, error)) (*Hold, error) {
	if !xp.HasAnnotation(u, AnnotationHold) {
		return nil, nil //nolint:nilnil // No hold is no error.
	}
	mark := xp.Annotation(u, AnnotationHold)
	of, err := checkMark(mark)
	if err == nil && of != "" && of != markedOf(u) {
		return nil, fmt.Errorf("cannot use the annotation %s of %s: %w", AnnotationHold, xp.String(u), errCopied)
	}
	var h *Hold
	if err == nil {
		h, err = decode(mark)
	}
	if errors.Is(err, ErrForged) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the annotation %s of %s: %w", AnnotationHold, xp.String(u), err)
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
	if h.Restore != "" && !isRestore(h.Restore) {
		return nil, fmt.Errorf("its Restore %q is no namespace and name of one, so this plugin has not written it", h.Restore)
	}

	return h, nil
}

func isRestore(s string) bool {
	namespace, name, ok := strings.Cut(s, "/")

	return ok && len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(name)) == 0
}
