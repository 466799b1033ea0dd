package xp

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// A UIDOwner is an object whose UID another object has in its fields.
type UIDOwner struct {
	Ref

	UID types.UID
	// Fields are the paths of the first of these fields.
	Fields []string
}

// SetUIDOwners notes on the backup's copy of a composed object whose UIDs it has in its fields.
func SetUIDOwners(u *unstructured.Unstructured, owners []UIDOwner) {
	list := make([]any, len(owners))
	for n, o := range owners {
		fields := make([]any, len(o.Fields))
		for n, path := range o.Fields {
			fields[n] = path
		}
		list[n] = map[string]any{"fields": fields, "apiVersion": o.APIVersion, "kind": o.Kind, "name": o.Name, "uid": string(o.UID)}
	}
	setField(u, FieldUIDs, list)
}

// UIDOwners reads the note of SetUIDOwners without the Fields, of maxUIDOwners objects at most. They have no
// namespace: an XR above is in the namespace of the object or in none.
func UIDOwners(u *unstructured.Unstructured) []UIDOwner {
	list, _, _ := field(u, FieldUIDs)
	var owners []UIDOwner
	for _, entry := range list[:min(len(list), maxUIDOwners)] {
		r, err := refFrom(entry)
		if err != nil {
			continue
		}
		m, _ := entry.(map[string]any)
		uid, _ := m["uid"].(string)
		owners = append(owners, UIDOwner{Ref: r, UID: types.UID(uid)})
	}

	return owners
}

// maxUIDOwners is how many objects above a composed one are looked at.
const maxUIDOwners = 16
