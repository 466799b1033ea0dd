package cluster

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Trim returns what planning reads of an object: a poll can observe a hundred thousand MRs. The
// result shares the object's values. XRs, claims, held objects and Crossplane's own kinds keep all
// but the managedFields that no hold changes. Other composed resources keep their metadata,
// conditions and the spec fields that identify an MR. It returns nil for nil.
func Trim(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	canBeHeld := xp.IsComposite(u) || xp.IsClaim(u) || xp.HasAnnotation(u, hold.Annotation)
	whole := canBeHeld || xp.IsCrossplaneGroup(u.GroupVersionKind().Group)
	out := make(map[string]any, len(u.Object))
	for key, value := range u.Object {
		switch fields, isMap := value.(map[string]any); {
		case key == "metadata" && isMap:
			out[key] = trimMetadata(u, fields, canBeHeld)
		case whole, !isMap:
			out[key] = value
		case key == "spec":
			spec := pick(fields, "writeConnectionSecretToRef", "managementPolicies")
			if _, ok := fields["forProvider"]; ok {
				spec["forProvider"] = map[string]any{} // It identifies an MR that no provider has reconciled yet.
			}
			out[key] = spec
		case key == "status":
			out[key] = pick(fields, "conditions")
		}
	}

	return &unstructured.Unstructured{Object: out}
}

// trimMetadata removes all managedFields but those that a hold changes, and those of the data of
// Secrets that are to get a controller.
func trimMetadata(u *unstructured.Unstructured, fields map[string]any, canBeHeld bool) map[string]any {
	out := maps.Clone(fields)
	if !hold.WritesManagers(u) {
		delete(out, "managedFields")
		if canBeHeld || adoption.NeedsManagers(u) {
			if managers := hold.Managers(u); managers != nil {
				out["managedFields"] = managers
			}
		}
	}
	if annotations, ok := out["annotations"].(map[string]any); ok {
		annotations = maps.Clone(annotations)
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		out["annotations"] = annotations
	}

	return out
}

func pick(fields map[string]any, names ...string) map[string]any {
	out := make(map[string]any, len(names))
	for _, name := range names {
		if value, ok := fields[name]; ok {
			out[name] = value
		}
	}

	return out
}
