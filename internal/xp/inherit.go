package xp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// domain is that of the annotations, labels and finalizers that Crossplane reads and writes.
const domain = "crossplane.io"

// Inherit gives a live XR or claim that somebody has made what it had from Crossplane in a backup:
// what it composed, its Composition and the revision of that, its finalizer, external-name and
// labels. What it has already stays, but for a revision that nobody has chosen. Whether it is
// paused is up to whoever has made it. It fails if the one in the backup composed nothing, or the
// live one has something else where that belongs.
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

// InheritedPaths are the fields that Inherit can write.
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

// composedBy is the field in which an XR or a claim names what it composed.
func composedBy(u *unstructured.Unstructured) string {
	if IsClaim(u) {
		return "resourceRef"
	}

	return "resourceRefs"
}

// HasComposed reports whether an XR lists anything or is a claim's, or a claim has an XR.
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

// inherited are labels or annotations with those of the backup that Crossplane reads.
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

// isOfCrossplane reports whether a qualified name is in Crossplane's domain, or in one below it.
func isOfCrossplane(name string) bool {
	in, _, ok := strings.Cut(name, "/")

	return ok && (in == domain || strings.HasSuffix(in, "."+domain))
}

// copyBackupMetadata gives an object what the backup's copy of it has that no live one has.
func copyBackupMetadata(to, from *unstructured.Unstructured) {
	for _, name := range backupMetadata {
		if value, ok, _ := unstructured.NestedFieldCopy(from.Object, "metadata", name); ok {
			_ = unstructured.SetNestedField(to.Object, value, "metadata", name) // Every live object has metadata.
		}
	}
}
