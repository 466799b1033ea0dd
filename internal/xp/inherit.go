package xp

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Inherit gives a live XR or claim, which another writer created, what Crossplane had written on it
// in a backup: composed resources, Composition and revision, finalizer, external-name, labels. Live
// values stay, except a revision under the update policy Automatic. The pause stays as it is. It
// fails if the backup's copy has no composed resources, or if a field in the way is not an object.
func Inherit(live, backup *unstructured.Unstructured) error {
	from, composed := Instance{backup}, composedBy(backup)
	policy := Get[string](live.Object, from.UpdatePolicyPath()...)
	for _, name := range []string{composed, fieldComposition, fieldRevision} {
		value, ok, _ := unstructured.NestedFieldCopy(backup.Object, from.path(name)...)
		has := Has(live.Object, from.path(name)...)
		switch {
		case !ok && name == composed:
			return fmt.Errorf("cannot give %s what it composed: there is nothing of that in the backup", String(live))
		case !ok, has && name == fieldComposition, has && name == fieldRevision && policy == UpdateManual:
			continue
		}
		if err := unstructured.SetNestedField(live.Object, value, from.path(name)...); err != nil {
			return fmt.Errorf("cannot give %s what it composed: %w", String(live), err)
		}
	}
	finalizers := live.GetFinalizers()
	for _, f := range backup.GetFinalizers() {
		if isOf(f, domain) && !slices.Contains(finalizers, f) {
			finalizers = append(finalizers, f)
		}
	}
	live.SetFinalizers(finalizers)
	live.SetAnnotations(inherited(live.GetAnnotations(), backup.GetAnnotations()))
	live.SetLabels(inherited(live.GetLabels(), backup.GetLabels()))
	for _, name := range noteFields {
		if value, ok, _ := unstructured.NestedFieldCopy(backup.Object, "metadata", name); ok {
			_ = unstructured.SetNestedField(live.Object, value, "metadata", name) // Every live object has metadata.
		}
	}

	return nil
}

// Inheritance returns the part of the backup's copy of an XR that Inherit, InheritedPaths and a hold
// of the inheriting XR read. It has neither the XR's own parameters nor its status.
func Inheritance(backup *unstructured.Unstructured) *unstructured.Unstructured {
	spec := map[string]any{}
	for name, value := range Get[map[string]any](backup.Object, "spec") {
		if slices.Contains(inheritedSpec, name) {
			spec[name] = value
		}
	}
	kept := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": backup.GetAPIVersion(), "kind": backup.GetKind(), "metadata": maps.Clone(Get[map[string]any](backup.Object, "metadata")), "spec": spec,
	}}
	kept.SetAnnotations(inherited(nil, backup.GetAnnotations()))
	kept.SetLabels(inherited(nil, backup.GetLabels()))

	return kept
}

// inheritedSpec are the fields in the spec of an XR that are Crossplane's.
var inheritedSpec = []string{ //nolint:gochecknoglobals // It is a constant list.
	"crossplane", fieldComposition, fieldRevision, "compositionSelector", "compositionRevisionSelector", "compositionUpdatePolicy", "resourceRefs",
	"claimRef", "environmentConfigRefs", "writeConnectionSecretToRef", "publishConnectionDetailsTo",
}

// InheritedPaths returns the paths of the fields that Inherit can write.
func InheritedPaths(backup *unstructured.Unstructured) [][]string {
	from := Instance{backup}
	paths := [][]string{{"metadata", "finalizers"}, from.path(composedBy(backup)), from.path(fieldComposition), from.path(fieldRevision)}
	for field, all := range map[string]map[string]string{"annotations": backup.GetAnnotations(), "labels": backup.GetLabels()} {
		for name := range inherited(nil, all) {
			paths = append(paths, []string{"metadata", field, name})
		}
	}

	return paths
}

const (
	fieldComposition = "compositionRef"
	fieldRevision    = "compositionRevisionRef"
)

// composedBy returns the field in which an XR or claim lists its composed resources or its XR.
func composedBy(u *unstructured.Unstructured) string {
	if IsClaim(u) {
		return "resourceRef"
	}

	return "resourceRefs"
}

// HasComposed reports whether an XR lists composed resources or has a claim, or whether a claim has
// an XR.
func HasComposed(u *unstructured.Unstructured) bool {
	for _, path := range [][]string{{"spec", "resourceRefs"}, {"spec", "crossplane", "resourceRefs"}, {"spec", "resourceRef"}, {"spec", "claimRef"}} {
		switch v := Get[any](u.Object, path...).(type) {
		case nil:
		case []any:
			if len(v) > 0 {
				return true
			}
		default:
			return true
		}
	}

	return false
}

// inherited adds to own labels or annotations those of the backup in Crossplane's domain. Own
// values win. The pause is left out.
func inherited(own, backup map[string]string) map[string]string {
	all := map[string]string{}
	for name, value := range backup {
		if isOf(name, domain) && name != AnnotationPaused {
			all[name] = value
		}
	}
	maps.Copy(all, own)

	return all
}
