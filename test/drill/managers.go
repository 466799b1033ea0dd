package drill

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Managers are the entries of an object's managedFields, without their times and their order: for
// each manager, with its operation, API version and subresource, the paths of the fields that it
// manages. Two objects with the same Managers give the same answers to every apply.
type Managers map[string][]string

// ManagersOf returns the Managers of an object. A path to an owner has the owner's kind and name in
// place of its UID, which differs between clusters.
func ManagersOf(u *unstructured.Unstructured) Managers {
	owners := map[string]string{}
	for _, o := range u.GetOwnerReferences() {
		owners[string(o.UID)] = o.Kind + " " + o.Name
	}
	m := Managers{}
	crossplane := map[string]bool{}
	entries, _, _ := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
	for _, entry := range entries {
		e, _ := entry.(map[string]any)
		fields, _ := e["fieldsV1"].(map[string]any)
		paths := map[string]bool{}
		flatten(paths, "", fields, owners)
		if isCrossplane(e) {
			maps.DeleteFunc(paths, func(path string, _ bool) bool {
				isCondition := strings.HasPrefix(path, conditionsPath+"/")
				if isCondition {
					crossplane[path] = true
				}

				return isCondition
			})
		}
		if len(paths) > 0 || len(fields) == 0 {
			m.add(describeEntry(e), slices.Sorted(maps.Keys(paths)))
		}
	}
	if len(crossplane) > 0 {
		m["Crossplane, conditions"] = slices.Sorted(maps.Keys(crossplane))
	}

	return m
}

const conditionsPath = "/status/conditions"

// isCrossplane reports whether Crossplane writes the status of claims and XRs under this entry.
// Crossplane v2 applies the conditions of an XR, and updates them too. Which of the two manages
// which part of a condition depends on the order and content of the writes.
func isCrossplane(entry map[string]any) bool {
	manager, _ := entry["manager"].(string)

	return entry["subresource"] == "status" && (manager == "apiextensions.crossplane.io/composite" || strings.HasPrefix(manager, "crossplane-v"))
}

// Without returns the entries of managers whose names don't begin with the text.
func (m Managers) Without(prefix string) Managers {
	rest := maps.Clone(m)
	maps.DeleteFunc(rest, func(name string, _ []string) bool { return strings.HasPrefix(name, prefix) })

	return rest
}

// add adds an entry. An entry that is there twice differs from one that is there once.
func (m Managers) add(name string, paths []string) {
	for {
		if _, taken := m[name]; !taken {
			m[name] = paths

			return
		}
		name += " again"
	}
}

func describeEntry(entry map[string]any) string {
	var words []string
	for _, key := range []string{"manager", "operation", "apiVersion", "subresource"} {
		if word, ok := entry[key].(string); ok {
			words = append(words, word)
		}
	}

	return strings.Join(words, " ")
}

// flatten adds the path of each field of a set that has no fields below it, or that is itself in
// the set, which "." in it means.
func flatten(paths map[string]bool, at string, fields map[string]any, owners map[string]string) {
	for key, value := range fields {
		path := at
		if key != itself {
			path += "/" + ownerNamed(key, at, owners)
		}
		children, _ := value.(map[string]any)
		kept := withoutVeleroFields(children)
		if len(kept) == 0 && len(children) > 0 {
			continue
		}
		if len(kept) == 0 && !varies(path) {
			paths[path] = true
		}
		flatten(paths, path, kept, owners)
	}
}

// itself stands for the field itself in the set of its fields.
const itself = "."

// varies reports whether the manager of a field, or its presence, changes without a restore too.
// The writer of the first condition manages the status and the conditions, and a restored object
// has none. Some time after the first conditions, Crossplane v2 sets whether it watches all events
// of an XR (Responsive). A condition has a message only while there is a problem. It has a
// generation only once a reconcile has written it, and the condition that upjet writes at the end
// of an asynchronous create has none.
func varies(path string) bool {
	return path == "/status" || path == conditionsPath || strings.HasPrefix(path, conditionsPath+`/{"type":"Responsive"}`) ||
		strings.HasPrefix(path, conditionsPath+"/") && (strings.HasSuffix(path, "/message") || strings.HasSuffix(path, "/observedGeneration"))
}

// withoutVeleroFields removes the labels that Velero writes, and the map that they are in if it has
// no other fields. Crossplane copies these labels from a claim to its XR, and provider-kubernetes
// copies them into the status of its Objects.
func withoutVeleroFields(fields map[string]any) map[string]any {
	kept := maps.Clone(fields)
	maps.DeleteFunc(kept, func(key string, _ any) bool { return strings.HasPrefix(key, "f:velero.io/") })
	if len(kept) < len(fields) && len(kept) == 1 {
		delete(kept, itself)
	}

	return kept
}

// ownerNamed returns a key without its type prefix. The key of an owner becomes the owner's kind
// and name.
func ownerNamed(key, at string, owners map[string]string) string {
	sort, text, _ := strings.Cut(key, ":")
	if sort != "k" {
		return text
	}
	var id struct {
		UID string `json:"uid"`
	}
	if at != "/metadata/ownerReferences" || json.Unmarshal([]byte(text), &id) != nil {
		return text
	}
	name, ok := owners[id.UID]
	if !ok {
		return "no owner of it: " + id.UID
	}

	return name
}
