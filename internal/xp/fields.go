package xp

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// Get returns the value at a path in the content of an object, or in an entry of a list in it; the
// zero value if there is none of this type. It copies nothing.
func Get[T any](content any, path ...string) T {
	m, _ := content.(map[string]any)
	v, _, _ := unstructured.NestedFieldNoCopy(m, path...)
	value, _ := v.(T)

	return value
}

// Has reports whether there is a value at a path in the content of an object. It can be null.
func Has(content map[string]any, path ...string) bool {
	_, ok, _ := unstructured.NestedFieldNoCopy(content, path...)

	return ok
}

// Strings returns the fields of an object at a path that are strings, such as those of a reference.
// Others can be beside them, such as the policy in a providerConfigRef.
func Strings(content map[string]any, path ...string) map[string]string {
	found := map[string]string{}
	for name, value := range Get[map[string]any](content, path...) {
		if s, ok := value.(string); ok {
			found[name] = s
		}
	}

	return found
}

// Maps returns the elements of a list in the content of an object that are maps.
func Maps(content map[string]any, path ...string) []map[string]any {
	all := Get[[]any](content, path...)
	found := make([]map[string]any, 0, len(all))
	for _, e := range all {
		if m, ok := e.(map[string]any); ok {
			found = append(found, m)
		}
	}

	return found
}

// ParseTime returns a time in RFC 3339, or zero if it is none.
func ParseTime(stamp string) time.Time {
	parsed, _ := time.Parse(time.RFC3339, stamp)

	return parsed
}

// Annotation returns an annotation of u, "" if there is none. Unlike GetAnnotations it copies
// nothing, which matters for thousands of objects.
func Annotation(u *unstructured.Unstructured, name string) string {
	value, _ := stringEntry(u, "annotations", name)

	return value
}

// HasAnnotation reports whether u has an annotation.
func HasAnnotation(u *unstructured.Unstructured, name string) bool {
	_, ok := stringEntry(u, "annotations", name)

	return ok
}

// Annotate sets an annotation of u.
func Annotate(u *unstructured.Unstructured, key, value string) {
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	u.SetAnnotations(annotations)
}

// Label returns a label of u, "" if there is none. It copies nothing.
func Label(u *unstructured.Unstructured, name string) string {
	value, _ := stringEntry(u, "labels", name)

	return value
}

// stringEntry reads an entry of a map in the metadata of u. If the map has a value that is no
// string, it has no entries, as for GetAnnotations.
func stringEntry(u *unstructured.Unstructured, field, name string) (value string, ok bool) {
	all := Get[map[string]any](u.Object, "metadata", field)
	if _, ok = all[name]; !ok {
		return "", false
	}
	for _, other := range all {
		if _, isString := other.(string); !isString && other != nil {
			return "", false
		}
	}
	value, _ = all[name].(string)

	return value, true
}

// hasFinalizer reports whether GetFinalizers would return a finalizer. It copies nothing.
func hasFinalizer(u *unstructured.Unstructured, name string) bool {
	found := false
	for _, f := range Get[[]any](u.Object, "metadata", "finalizers") {
		s, isString := f.(string)
		if !isString {
			return false
		}
		found = found || s == name
	}

	return found
}

// domain is the domain of Crossplane's annotations, labels and finalizers.
const domain = "crossplane.io"

// isOf reports whether a qualified name is in a domain, or in a subdomain of it.
func isOf(name string, domains ...string) bool {
	in, _, ok := strings.Cut(name, "/")

	return ok && slices.ContainsFunc(domains, func(d string) bool { return in == d || strings.HasSuffix(in, "."+d) })
}

// CheckMetadata returns an error if the metadata of an object is malformed. The getters of
// unstructured return nothing for malformed labels or annotations, and a setter then removes all of
// them. An API server neither accepts nor stores such an object, so a writer to the bucket has made
// it.
func CheckMetadata(u *unstructured.Unstructured) error {
	metadata, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		return reason.Malformed.Errorf("its metadata is not an object")
	}
	for _, field := range []string{"annotations", "labels"} {
		if metadata[field] == nil {
			continue
		}
		if _, _, err := unstructured.NestedStringMap(metadata, field); err != nil {
			return reason.Malformed.Errorf("its %s are not all strings: %w", field, err)
		}
	}
	if metadata["finalizers"] != nil {
		if _, _, err := unstructured.NestedStringSlice(metadata, "finalizers"); err != nil {
			return reason.Malformed.Errorf("its finalizers are not a list of strings: %w", err)
		}
	}
	if metadata["ownerReferences"] == nil {
		return nil
	}
	owners, ok := metadata["ownerReferences"].([]any)
	for _, o := range owners {
		_, isObject := o.(map[string]any)
		ok = ok && isObject
	}
	if !ok {
		return reason.Malformed.Errorf("its ownerReferences are not a list of objects")
	}

	return nil
}
