package xp

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Annotation returns an annotation of u as GetAnnotations does, "" if there is none. It copies
// nothing, which matters where there are thousands.
func Annotation(u *unstructured.Unstructured, name string) string {
	value, _ := stringEntry(u, "annotations", name)

	return value
}

// HasAnnotation reports whether u has an annotation.
func HasAnnotation(u *unstructured.Unstructured, name string) bool {
	_, ok := stringEntry(u, "annotations", name)

	return ok
}

// Label returns a label of u as GetLabels does, "" if there is none. It copies nothing either.
func Label(u *unstructured.Unstructured, name string) string {
	value, _ := stringEntry(u, "labels", name)

	return value
}

// stringEntry reads from a map of strings in the metadata of u. One in which there is anything else
// has nothing.
func stringEntry(u *unstructured.Unstructured, field, name string) (value string, ok bool) {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", field)
	all, _ := v.(map[string]any)
	if _, ok = all[name]; !ok {
		return "", false
	}
	for _, other := range all {
		if _, is := other.(string); !is && other != nil {
			return "", false
		}
	}
	value, _ = all[name].(string)

	return value, true
}

// hasFinalizer reports whether a finalizer is among those that GetFinalizers returns.
func hasFinalizer(u *unstructured.Unstructured, name string) bool {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "finalizers")
	all, _ := v.([]any)
	found := false
	for _, f := range all {
		s, is := f.(string)
		if !is {
			return false
		}
		found = found || s == name
	}

	return found
}

// CheckMetadata fails if the metadata of an object is not as Kubernetes has it. Whoever reads such
// labels or annotations finds none, and takes away all of them by writing one. An API server
// neither stores nor accepts it, so only who has written to a backup can have made it.
func CheckMetadata(u *unstructured.Unstructured) error {
	metadata, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		return errors.New("its metadata are no object")
	}
	for _, field := range []string{"annotations", "labels"} {
		if metadata[field] == nil {
			continue
		}
		if _, _, err := unstructured.NestedStringMap(metadata, field); err != nil {
			return fmt.Errorf("its %s are not all strings: %w", field, err)
		}
	}
	if metadata["finalizers"] != nil {
		if _, _, err := unstructured.NestedStringSlice(metadata, "finalizers"); err != nil {
			return fmt.Errorf("its finalizers are no list of strings: %w", err)
		}
	}
	if metadata["ownerReferences"] == nil {
		return nil
	}
	owners, ok := metadata["ownerReferences"].([]any)
	for _, o := range owners {
		_, is := o.(map[string]any)
		ok = ok && is
	}
	if !ok {
		return errors.New("its ownerReferences are no list of objects")
	}

	return nil
}
