package xp

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// CheckMetadata fails if the metadata of an object is not as Kubernetes has it. Whoever reads such labels or annotations finds none, and takes away all of
// them by writing one. An API server neither stores nor accepts it, so only who has written to a backup can have made it.
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
