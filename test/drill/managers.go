package drill

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
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
		owners[`[uid="`+string(o.UID)+`"]`] = o.Kind + " " + o.Name
	}
	m := Managers{}
	crossplane := map[string]bool{}
	for _, e := range u.GetManagedFields() {
		paths, isEmpty := pathsOf(e, owners)
		if isCrossplane(e) {
			maps.DeleteFunc(paths, func(path string, _ bool) bool {
				isCondition := strings.HasPrefix(path, conditionsPath+"/")
				if isCondition {
					crossplane[path] = true
				}

				return isCondition
			})
		}
		if len(paths) > 0 || isEmpty {
			m.add(e, slices.Sorted(maps.Keys(paths)))
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
func isCrossplane(e metav1.ManagedFieldsEntry) bool {
	return e.Subresource == "status" && (e.Manager == "apiextensions.crossplane.io/composite" || strings.HasPrefix(e.Manager, "crossplane-v"))
}

// Without returns the entries of managers whose names don't begin with the text.
func (m Managers) Without(prefix string) Managers {
	rest := maps.Clone(m)
	maps.DeleteFunc(rest, func(name string, _ []string) bool { return strings.HasPrefix(name, prefix) })

	return rest
}

// noOwner begins what stands in a path for an owner that the object does not have.
const noOwner = "no owner of it: "

// deadOwner returns the UID in a path that none of the object's owners has; "" if there is none.
func (m Managers) deadOwner() string {
	for _, paths := range m {
		for _, path := range paths {
			if _, uid, ok := strings.Cut(path, noOwner); ok {
				return uid
			}
		}
	}

	return ""
}

// add adds an entry. An entry that is there twice differs from one that is there once.
func (m Managers) add(e metav1.ManagedFieldsEntry, paths []string) {
	name := strings.Join(strings.Fields(e.Manager+" "+string(e.Operation)+" "+e.APIVersion+" "+e.Subresource), " ")
	for m[name] != nil {
		name += " again"
	}
	m[name] = append([]string{}, paths...)
}

// pathsOf returns the paths of an entry's fields that do not vary, and whether it has none at all.
// The labels that Velero writes are left out, with the map that they are in if it has no other
// fields. Crossplane copies these labels from a claim to its XR, and provider-kubernetes copies them
// into the status of its Objects.
func pathsOf(e metav1.ManagedFieldsEntry, owners map[string]string) (paths map[string]bool, isEmpty bool) {
	set := &fieldpath.Set{}
	paths = map[string]bool{}
	if e.FieldsV1 != nil {
		if err := set.FromJSON(bytes.NewReader(e.FieldsV1.Raw)); err != nil {
			return map[string]bool{"unreadable: " + err.Error(): true}, false
		}
	}
	ofVelero := map[string]bool{}
	set.Iterate(func(p fieldpath.Path) {
		text := ""
		for _, element := range p {
			part := element.String()
			if element.FieldName != nil {
				part = *element.FieldName
			}
			if strings.HasPrefix(part, "velero.io/") {
				ofVelero[text] = true

				return
			}
			if text == "/metadata/ownerReferences" {
				owner, ok := owners[part]
				if part = owner; !ok {
					part = noOwner + element.String()
				}
			}
			text += "/" + part
		}
		if !varies(text) {
			paths[text] = true
		}
	})
	maps.DeleteFunc(paths, func(path string, _ bool) bool {
		hasOthers := func(other string) bool { return strings.HasPrefix(other, path+"/") }

		return ofVelero[path] && !slices.ContainsFunc(slices.Collect(maps.Keys(paths)), hasOthers)
	})

	return paths, set.Empty()
}

// varies reports whether the manager of a field, or its presence, changes without a restore too.
// The writer of the first condition manages the status and the conditions, and a restored object
// has none. Some time after the first conditions, Crossplane v2 sets whether it watches all events
// of an XR (Responsive). A condition has a message only while there is a problem. It has a
// generation only once a reconcile has written it, and the condition that upjet writes at the end
// of an asynchronous create has none.
func varies(path string) bool {
	return path == "/status" || path == conditionsPath || strings.HasPrefix(path, conditionsPath+`/[type="Responsive"]`) ||
		strings.HasPrefix(path, conditionsPath+"/") && (strings.HasSuffix(path, "/message") || strings.HasSuffix(path, "/observedGeneration"))
}
