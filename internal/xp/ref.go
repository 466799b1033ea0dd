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

// Annotate sets an annotation of u.
func Annotate(u *unstructured.Unstructured, key, value string) {
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	u.SetAnnotations(annotations)
}

// refAt reads a Ref at the path of fields. Its namespace may be "". It returns false if there is no
// object with an apiVersion and a kind.
func refAt(u *unstructured.Unstructured, fields ...string) (Ref, bool) {
	v, found, _ := unstructured.NestedFieldNoCopy(u.Object, fields...)
	if !found {
		return Ref{}, false
	}
	r, err := refFrom(v)

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
