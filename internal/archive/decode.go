package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// GroupCRD is the group of CRDs.
const GroupCRD = "apiextensions.k8s.io"

// crossplanes is in the name of everything that Crossplane writes onto an object.
const crossplanes = "crossplane.io"

// decode returns an item without what nobody may see or needs. It fails if it is not what its path says.
func decode(i xp.Item, b []byte) (*unstructured.Unstructured, error) {
	var u *unstructured.Unstructured
	var err error
	switch {
	case i.Group == GroupCRD:
		u, err = decodeCRD(b)
	case xp.IsCustom(i.Group) || bytes.Contains(b, []byte(crossplanes)):
		u = &unstructured.Unstructured{}
		err = u.UnmarshalJSON(b)
	default:
		u, err = decodeMeta(b)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot decode it: %w", plain(err))
	}
	if err := check(i, u); err != nil {
		return nil, err
	}
	// A Secret's values are also in what kubectl applied.
	delete(u.Object, "data")
	delete(u.Object, "stringData")
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")

	return u, nil
}

// check compares an object with what its path says: Velero goes by the path when an action asks for an item, and by the object when it creates it.
func check(i xp.Item, u *unstructured.Unstructured) error {
	if _, ok := u.Object["metadata"].(map[string]any); !ok {
		return errors.New("it has no metadata")
	}
	if u.GetKind() == "" || u.GetAPIVersion() == "" {
		return errors.New("it has no kind or no apiVersion")
	}
	if group := u.GroupVersionKind().Group; group != i.Group {
		return fmt.Errorf("it is of the group %q, which its path is not", group)
	}
	if u.GetName() != i.Name || u.GetNamespace() != i.Namespace {
		return fmt.Errorf("it is %s, which its path does not say; find out who has written it", xp.String(u))
	}

	return nil
}

// decodeMeta decodes no more than the kind and the metadata.
func decodeMeta(b []byte) (*unstructured.Unstructured, error) {
	var part struct {
		metav1.TypeMeta `json:",inline"`

		Metadata map[string]any `json:"metadata"`
	}
	if err := json.Unmarshal(b, &part); err != nil {
		return nil, err //nolint:wrapcheck // The caller does.
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": part.APIVersion, "kind": part.Kind}}
	if part.Metadata == nil {
		return u, nil
	}
	metadata := map[string]any{}
	for _, field := range []string{"name", "namespace", "uid", "labels", "annotations", "ownerReferences", "creationTimestamp", "deletionTimestamp"} {
		if v, ok := part.Metadata[field]; ok {
			metadata[field] = v
		}
	}
	u.Object["metadata"] = metadata

	return u, nil
}

// decodeCRD decodes what a CRD says of its kind, without the schemas, which are long.
func decodeCRD(b []byte) (*unstructured.Unstructured, error) {
	u, err := decodeMeta(b)
	if err != nil {
		return nil, err
	}
	var part struct {
		Spec struct {
			Group string `json:"group"`
			Scope string `json:"scope"`
			Names struct {
				Kind   string `json:"kind"`
				Plural string `json:"plural"`
			} `json:"names"`
			Versions []struct {
				Name   string `json:"name"`
				Served bool   `json:"served"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(b, &part); err != nil {
		return nil, err //nolint:wrapcheck // The caller does.
	}
	versions := make([]any, 0, len(part.Spec.Versions))
	for _, v := range part.Spec.Versions {
		versions = append(versions, map[string]any{"name": v.Name, "served": v.Served})
	}
	u.Object["spec"] = map[string]any{
		"group": part.Spec.Group, "scope": part.Spec.Scope, "versions": versions,
		"names": map[string]any{"kind": part.Spec.Names.Kind, "plural": part.Spec.Names.Plural},
	}

	return u, nil
}

// plain takes the content out of an error of decoding: it can have a secret in it.
func plain(err error) error {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("byte %d of it is no JSON", syntax.Offset)
	case errors.As(err, &wrong):
		return fmt.Errorf("its field %s is a %s", wrong.Field, wrong.Value)
	default:
		return errors.New("it is no Kubernetes object in JSON")
	}
}

// weight is about how much memory a value takes. What is short in JSON, such as a list of empty lists, takes many times that.
func weight(v any) int64 {
	const value, object, field = 16, 48, 64
	size := int64(value)
	switch v := v.(type) {
	case string:
		size += int64(len(v))
	case []any:
		for _, entry := range v {
			size += weight(entry)
		}
	case map[string]any:
		size += object
		for name, entry := range v {
			size += field + int64(len(name)) + weight(entry)
		}
	}

	return size
}
