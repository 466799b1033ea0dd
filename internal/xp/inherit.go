package xp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// domain is the domain of Crossplane's annotations, labels and finalizers.
const domain = "crossplane.io"

// Inherit gives a live XR or claim, which another writer created, what Crossplane had written on it
// in a backup: composed resources, Composition and revision, finalizer, external-name, labels. Live
// values stay, except a revision under the update policy Automatic. The pause stays as it is. It
// fails if the backup's copy has no composed resources, or if a field in the way is not an object.
func Inherit(live, backup *unstructured.Unstructured) error {
	from, composed := Instance{backup}, composedBy(backup)
	policy, _, _ := unstructured.NestedString(live.Object, from.path("compositionUpdatePolicy")...)
	for _, name := range []string{composed, fieldComposition, fieldRevision} {
		value, ok, _ := unstructured.NestedFieldCopy(backup.Object, from.path(name)...)
		_, has, _ := unstructured.NestedFieldNoCopy(live.Object, from.path(name)...)
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
		if isOfCrossplane(f) && !slices.Contains(finalizers, f) {
			finalizers = append(finalizers, f)
		}
	}
	live.SetFinalizers(finalizers)
	live.SetAnnotations(inherited(live.GetAnnotations(), backup.GetAnnotations()))
	live.SetLabels(inherited(live.GetLabels(), backup.GetLabels()))
	copyBackupMetadata(live, backup)

	return nil
}

// Inheritance returns the part of the backup's copy of an XR that Inherit, InheritedPaths and a hold
// of the inheriting XR read. It has neither the XR's own parameters nor its status.
func Inheritance(backup *unstructured.Unstructured) *unstructured.Unstructured {
	in, _, _ := unstructured.NestedMap(backup.Object, "metadata")
	metadata := map[string]any{}
	for _, name := range slices.Concat([]string{"name", "namespace", "uid", "finalizers", "managedFields", "ownerReferences"}, backupMetadata) {
		if value, ok := in[name]; ok {
			metadata[name] = value
		}
	}
	for field, own := range map[string]map[string]string{"annotations": backup.GetAnnotations(), "labels": backup.GetLabels()} {
		theirs := map[string]any{}
		for name, value := range inherited(nil, own) {
			theirs[name] = value
		}
		metadata[field] = theirs
	}
	spec := map[string]any{}
	for _, name := range inheritedSpec {
		if value, ok, _ := unstructured.NestedFieldNoCopy(backup.Object, "spec", name); ok {
			spec[name] = value
		}
	}
	if hasV2Schema(backup) {
		spec["crossplane"], _, _ = unstructured.NestedFieldNoCopy(backup.Object, "spec", "crossplane")
	}

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": backup.GetAPIVersion(), "kind": backup.GetKind(), "metadata": metadata, "spec": spec,
	}}
}

// inheritedSpec are the fields in the spec of an XR that are Crossplane v1's.
var inheritedSpec = []string{ //nolint:gochecknoglobals // It is a constant list.
	fieldComposition, fieldRevision, "compositionSelector", "compositionRevisionSelector", "compositionUpdatePolicy", "resourceRefs", "claimRef",
	"environmentConfigRefs", "writeConnectionSecretToRef", "publishConnectionDetailsTo",
}

// InheritedPaths returns the paths of the fields that Inherit can write.
func InheritedPaths(backup *unstructured.Unstructured) [][]string {
	from := Instance{backup}
	paths := [][]string{{"metadata", "finalizers"}, from.path(composedBy(backup)), from.path(fieldComposition), from.path(fieldRevision)}
	for field, names := range map[string]map[string]string{"annotations": backup.GetAnnotations(), "labels": backup.GetLabels()} {
		for name := range names {
			if isOfCrossplane(name) && name != AnnotationPaused {
				paths = append(paths, []string{"metadata", field, name})
			}
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
		switch v, ok, err := unstructured.NestedFieldNoCopy(u.Object, path...); list := v.(type) {
		case []any:
			if len(list) > 0 {
				return true
			}
		default:
			if ok && err == nil && v != nil {
				return true
			}
		}
	}

	return false
}

// inherited adds to own labels or annotations those of the backup in Crossplane's domain. Own
// values win. The pause is left out.
func inherited(own, backup map[string]string) map[string]string {
	all := map[string]string{}
	for name, value := range backup {
		if isOfCrossplane(name) && name != AnnotationPaused {
			all[name] = value
		}
	}
	maps.Copy(all, own)

	return all
}

// isOfCrossplane reports whether a qualified name is in Crossplane's domain or a subdomain.
func isOfCrossplane(name string) bool {
	in, _, ok := strings.Cut(name, "/")

	return ok && (in == domain || strings.HasSuffix(in, "."+domain))
}

// copyBackupMetadata copies the fields that only a backup's copy of an object has.
func copyBackupMetadata(to, from *unstructured.Unstructured) {
	for _, name := range backupMetadata {
		if value, ok, _ := unstructured.NestedFieldCopy(from.Object, "metadata", name); ok {
			_ = unstructured.SetNestedField(to.Object, value, "metadata", name) // Every live object has metadata.
		}
	}
}
