package xp

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A Ref is a reference to an object, as in Crossplane's resourceRefs.
type Ref struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is "" for a cluster-scoped object.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// An ID is a Ref without the API version. Two Refs with the same ID are the same object.
type ID struct {
	Group     string
	Kind      string
	Namespace string
	Name      string
}

// RefTo returns the Ref of an object.
func RefTo(u *unstructured.Unstructured) Ref {
	return Ref{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// RefToSecret returns the Ref of a Secret.
func RefToSecret(namespace, name string) Ref {
	return Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}
}

// IdentityOnly returns an object with its identity and resource version only. A patch or an Event
// needs no more.
func IdentityOnly(r Ref, uid types.UID, version string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": r.APIVersion, "kind": r.Kind}}
	u.SetNamespace(r.Namespace)
	u.SetName(r.Name)
	u.SetUID(uid)
	u.SetResourceVersion(version)

	return u
}

// GroupVersionKind returns the kind of the Ref. It is empty, so that no server serves it, if the
// API version can't be parsed.
func (r Ref) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// ID returns the ID of the Ref.
func (r Ref) ID() ID {
	return ID{Group: r.GroupVersionKind().Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// IDs returns the set of the IDs of refs.
func IDs(refs []Ref) map[ID]bool {
	ids := make(map[ID]bool, len(refs))
	for _, r := range refs {
		ids[r.ID()] = true
	}

	return ids
}

// String returns "Kind namespace/name", or "Kind name", for messages.
func (r Ref) String() string {
	return r.Kind + " " + r.Path()
}

// content returns the Ref as JSON is decoded.
func (r Ref) content() map[string]any {
	m := map[string]any{"apiVersion": r.APIVersion, "kind": r.Kind, "name": r.Name}
	if r.Namespace != "" {
		m["namespace"] = r.Namespace
	}

	return m
}

// IsValidName reports whether an API server can have an object with this name and namespace ("" for
// none). Both become parts of a URL and of a path in a backup, and a tenant can write any
// reference. With "../team-b/password" Velero would read a file of another namespace (velero
// pkg/archive/filesystem.go, GetItemFilePath).
func IsValidName(namespace, name string) bool {
	const longest = 253

	return name != "" && len(name) <= longest && len(namespace) <= longest &&
		len(path.IsValidPathSegmentName(name)) == 0 && len(path.IsValidPathSegmentName(namespace)) == 0
}

// Path returns namespace/name, or name.
func (r Ref) Path() string {
	if r.Namespace == "" {
		return r.Name
	}

	return r.Namespace + "/" + r.Name
}

// SomeOf returns the names of the first three objects, and the number of the others.
func SomeOf(refs []Ref) string {
	const few = 3
	all := make([]string, 0, few)
	for _, r := range refs[:min(few, len(refs))] {
		all = append(all, r.String())
	}
	s := strings.Join(all, ", ")
	if more := len(refs) - few; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}

	return s
}

// Compare orders Refs by API version, kind, namespace and name.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.APIVersion, o.APIVersion), cmp.Compare(r.Kind, o.Kind), cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Name, o.Name))
}

// String returns "Kind namespace/name", or "Kind name", of an object, for messages.
func String(u *unstructured.Unstructured) string {
	return RefTo(u).String()
}

// refAt reads a Ref at the path of fields. Its namespace may be "". It returns false if there is no
// object with an apiVersion and a kind.
func refAt(u *unstructured.Unstructured, fields ...string) (Ref, bool) {
	r, err := refFrom(Get[any](u.Object, fields...))

	return r, err == nil
}

func refFrom(v any) (Ref, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return Ref{}, fmt.Errorf("it is a %T, not an object", v)
	}
	var r Ref
	for _, f := range [...]struct {
		name string
		text *string
	}{{"apiVersion", &r.APIVersion}, {"kind", &r.Kind}, {"namespace", &r.Namespace}, {"name", &r.Name}} {
		value, ok := m[f.name]
		if !ok {
			continue
		}
		if *f.text, ok = value.(string); !ok {
			return Ref{}, fmt.Errorf("its %s is a %T, not a string", f.name, value)
		}
	}
	if r.APIVersion == "" || r.Kind == "" {
		return Ref{}, errors.New("it has no apiVersion or no kind")
	}

	return r, nil
}

// MapNamespaces rewrites the references of u from mapped namespaces to the new ones: the namespace
// of each field of the spec whose name ends in Ref or Refs, as Crossplane and providers name
// references, and the label with the claim's namespace. The manifest in an Object of
// provider-kubernetes stays as it is: that is the external resource.
func MapNamespaces(u *unstructured.Unstructured, mapping map[string]string) {
	labels := u.GetLabels()
	if to, ok := mapping[labels[LabelClaimNamespace]]; ok && labels[LabelClaimNamespace] != "" {
		labels[LabelClaimNamespace] = to
		u.SetLabels(labels)
	}
	mapFields(Get[map[string]any](u.Object, "spec"), mapping)
	// A namespaced XR composes in its own namespace, which changes with the XR.
	if u.GetNamespace() == "" {
		for _, name := range []string{FieldUnresolvedRefs, FieldConditions} {
			mapFields(map[string]any{"noteRefs": Get[any](u.Object, "metadata", name)}, mapping)
		}
	}
}

func mapFields(fields map[string]any, mapping map[string]string) {
	for name, value := range fields {
		if name == "manifest" {
			continue
		}
		entries, ok := value.([]any)
		if !ok {
			entries = []any{value}
		}
		for _, entry := range entries {
			m, _ := entry.(map[string]any)
			if namespace := Get[string](m, "namespace"); namespace != "" && isReference(name) {
				m["namespace"] = cmp.Or(mapping[namespace], namespace)
			}
			mapFields(m, mapping)
		}
	}
}

// isReference reports whether a field holds a reference. The selector of a Usage has a namespace
// too, and provider-kubernetes has two references with other names.
func isReference(field string) bool {
	return strings.HasSuffix(field, "Ref") || strings.HasSuffix(field, "Refs") || field == "dependsOn" || field == "patchesFrom" || field == "resourceSelector"
}
