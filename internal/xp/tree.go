package xp

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An Item is an object as Velero names it.
type Item struct {
	schema.GroupResource
	// Namespace is "" for a cluster-scoped object.
	Namespace string
	Name      string
}

// Resources of Crossplane's own kinds that an XR can't do without.
var (
	ResourceXRD         = schema.GroupResource{Group: GroupAPIExtensions, Resource: "compositeresourcedefinitions"}
	ResourceComposition = schema.GroupResource{Group: GroupAPIExtensions, Resource: "compositions"}
	ResourceRevision    = schema.GroupResource{Group: GroupAPIExtensions, Resource: "compositionrevisions"}
)

func (i Item) String() string {
	return i.GroupResource.String() + "/" + i.Namespace + "/" + i.Name
}

func parseItem(s string) (Item, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return Item{}, fmt.Errorf(`cannot read %q as "resource.group/namespace/name"`, s)
	}

	return Item{GroupResource: schema.ParseGroupResource(parts[0]), Namespace: parts[1], Name: parts[2]}, nil
}

// SetTree writes what must come back before u onto the backup's copy of it. Without items it takes off what is there, since a tenant
// can write any annotation.
func SetTree(u *unstructured.Unstructured, items []Item) {
	if len(items) == 0 {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", AnnotationTree)

		return
	}
	list := make([]string, len(items))
	for i, item := range items {
		list[i] = item.String()
	}
	annotate(u, AnnotationTree, list)
}

// Tree reads what SetTree wrote; ok is false if there is nothing.
func Tree(u *unstructured.Unstructured) (items []Item, ok bool, err error) {
	s, ok := u.GetAnnotations()[AnnotationTree]
	if !ok {
		return nil, false, nil
	}
	var list []string
	if err := json.Unmarshal([]byte(s), &list); err != nil {
		return nil, false, fmt.Errorf("cannot read the annotation %s of %s: %w", AnnotationTree, String(u), err)
	}
	for _, entry := range list {
		item, err := parseItem(entry)
		if err != nil {
			return nil, false, fmt.Errorf("cannot read the annotation %s of %s: %w", AnnotationTree, String(u), err)
		}
		items = append(items, item)
	}

	return items, true, nil
}

// SetDangling writes the refs that lead nowhere onto the backup's copy of an XR, as SetTree does.
func SetDangling(u *unstructured.Unstructured, refs []Ref) {
	if len(refs) == 0 {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", AnnotationDangling)

		return
	}
	annotate(u, AnnotationDangling, refs)
}

// Dangling reads what SetDangling wrote; it returns nil if there is nothing.
func Dangling(u *unstructured.Unstructured) ([]Ref, error) {
	s, ok := u.GetAnnotations()[AnnotationDangling]
	if !ok {
		return nil, nil
	}
	var refs []Ref
	if err := json.Unmarshal([]byte(s), &refs); err != nil {
		return nil, fmt.Errorf("cannot read the annotation %s of %s: %w", AnnotationDangling, String(u), err)
	}

	return refs, nil
}

func annotate(u *unstructured.Unstructured, key string, value any) {
	b, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("cannot encode the annotation %s: %v", key, err)) // Strings and structs of strings always encode.
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = string(b)
	u.SetAnnotations(annotations)
}
