package live

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A slimmer leaves of what is observed what planning reads, and keeps the same text once: a poll can observe a hundred thousand MRs.
type slimmer map[string]string

// longest is how long a text is that may be the same in many objects.
const longest = 48

// slim returns what planning reads of an object. Of XRs, claims, what is held, and what Crossplane itself brings, that is all but who manages which field;
// of what an XR composes it is who it is, whose, and how well.
func (s slimmer) slim(u *unstructured.Unstructured) *unstructured.Unstructured {
	whole := xp.IsComposite(u) || xp.IsClaim(u) || xp.IsOwn(u.GroupVersionKind().Group) ||
		xp.HasAnnotation(u, adoption.AnnotationHold) || xp.HasAnnotation(u, adoption.AnnotationClaimHold)
	out := make(map[string]any, len(u.Object))
	for key, value := range u.Object {
		switch fields, isMap := value.(map[string]any); {
		case key == "metadata" && isMap:
			out[key] = s.metadata(fields)
		case whole, !isMap:
			out[s.text(key)] = s.copy(value)
		case key == "spec":
			spec := s.only(fields, "writeConnectionSecretToRef", "managementPolicies")
			if _, ok := fields["forProvider"]; ok {
				spec["forProvider"] = map[string]any{} // It tells an MR that no provider has seen yet.
			}
			out[key] = spec
		case key == "status":
			out[key] = s.only(fields, "conditions")
		}
	}

	return &unstructured.Unstructured{Object: out}
}

func (s slimmer) metadata(fields map[string]any) map[string]any {
	out := make(map[string]any, len(fields))
	for key, value := range fields {
		switch key {
		case "managedFields":
		case "uid", "resourceVersion": // No two objects have the same.
			out[key] = value
		default:
			out[s.text(key)] = s.copy(value)
		}
	}
	if annotations, ok := out["annotations"].(map[string]any); ok {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	}

	return out
}

func (s slimmer) only(fields map[string]any, names ...string) map[string]any {
	out := make(map[string]any, len(names))
	for _, name := range names {
		if value, ok := fields[name]; ok {
			out[name] = s.copy(value)
		}
	}

	return out
}

// copy returns a value in which nothing is shared with what was decoded at the same time.
func (s slimmer) copy(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, field := range v {
			out[s.text(key)] = s.copy(field)
		}

		return out
	case []any:
		out := make([]any, len(v))
		for i, entry := range v {
			out[i] = s.copy(entry)
		}

		return out
	case string:
		return s.text(v)
	default:
		return v
	}
}

func (s slimmer) text(t string) string {
	if len(t) > longest {
		return t
	}
	if same, ok := s[t]; ok {
		return same
	}
	t = strings.Clone(t) // It may be a part of something long.
	s[t] = t

	return t
}
