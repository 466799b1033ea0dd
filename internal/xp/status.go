package xp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// UnknownConditions means that the backup has no conditions of a resource.
const UnknownConditions TrueConditions = "?"

// TrueConditions are the conditions of a composed resource that were True at the backup, such as
// "Ready,Synced".
type TrueConditions string

// TrueConditionsOf returns which of Ready and Synced are True on u.
func TrueConditionsOf(u *unstructured.Unstructured) TrueConditions {
	var names []string
	for _, t := range []string{ConditionReady, ConditionSynced} {
		if c, ok := ConditionOf(u, t); ok && c.Status == "True" {
			names = append(names, t)
		}
	}

	return TrueConditions(strings.Join(names, ","))
}

// Missing returns the conditions that were True and are not True on u now.
func (tc TrueConditions) Missing(u *unstructured.Unstructured) []string {
	if tc == "" || tc == UnknownConditions {
		return nil
	}

	return slices.DeleteFunc(strings.Split(string(tc), ","), func(t string) bool {
		c, ok := ConditionOf(u, t)

		return ok && c.Status == "True"
	})
}

// SetSavedConditions notes on the backup's copy of an XR the conditions of each composed resource.
func SetSavedConditions(u *unstructured.Unstructured, composed []*unstructured.Unstructured) {
	list := make([]any, len(composed))
	for i, c := range composed {
		m := map[string]any{"apiVersion": c.GetAPIVersion(), "kind": c.GetKind(), "name": c.GetName(), "conditions": string(TrueConditionsOf(c))}
		if c.GetNamespace() != "" {
			m["namespace"] = c.GetNamespace()
		}
		list[i] = m
	}
	setField(u, FieldConditions, list)
}

// SavedConditions returns the noted conditions of each ref, in the order of refs. It returns nil if
// there is no readable note.
func SavedConditions(u *unstructured.Unstructured, refs []Ref) []TrueConditions {
	list, ok, err := field(u, FieldConditions)
	if err != nil || !ok {
		return nil
	}
	saved := map[ID]TrueConditions{}
	for _, entry := range list {
		r, err := refFrom(entry)
		m, _ := entry.(map[string]any)
		conditions, ok := m["conditions"].(string)
		if err != nil || !ok {
			return nil
		}
		// A namespaced XR composes in the namespace that it is restored to.
		if u.GetNamespace() != "" {
			r.Namespace = u.GetNamespace()
		}
		saved[r.ID()] = TrueConditions(conditions)
	}
	found := make([]TrueConditions, len(refs))
	for i, r := range refs {
		if found[i], ok = saved[r.ID()]; !ok {
			found[i] = UnknownConditions
		}
	}

	return found
}

// NeededStatus returns the fields of the status of u, from a backup and without a hold, that a
// restore must restore because no controller writes them, or one reads them before that:
//   - the whole status of an XR, claim or MR that its user has paused,
//   - what functions have written on an XR, and may read at the next reconcile,
//   - the whole status of a composed MR or XR that is not Synced,
//   - status.atProvider of an MR of upjet, which finds the external resource with it.
func NeededStatus(u *unstructured.Unstructured) []string {
	status, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status")
	fields, _ := status.(map[string]any)
	names := slices.Sorted(maps.Keys(fields))
	synced, _ := ConditionOf(u, ConditionSynced)
	switch managed, composite := IsManaged(u), IsComposite(u); {
	case (managed || composite || IsClaim(u)) && IsIdle(u), (managed || composite) && IsComposed(u) && synced.Status != "True":
		return names
	case !composite:
		return slices.DeleteFunc(names, func(name string) bool { return name != "atProvider" || !IsUpjet(u) })
	default:
		return slices.DeleteFunc(names, isCrossplaneStatus)
	}
}

// isCrossplaneStatus reports whether Crossplane writes a field of the status of XRs
// (crossplane-runtime pkg/xcrd/schemas.go).
func isCrossplaneStatus(name string) bool {
	switch name {
	case "conditions", "connectionDetails", "claimConditionTypes", "lastHandledReconcileAt", "crossplane":
		return true
	default:
		return false
	}
}

// MissingStatus returns the named fields that the status of u lacks.
func MissingStatus(u *unstructured.Unstructured, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "status", name)

		return ok
	})
}

// LackingStatus returns those of the named fields of a status that u lacks. Of the conditions these
// are the types that u lacks, beside its own: the controller of a paused object reports the pause.
func LackingStatus(u *unstructured.Unstructured, names []string, status map[string]any) map[string]any {
	lacking := map[string]any{}
	for _, name := range names {
		value, ok := status[name]
		is, has, _ := unstructured.NestedFieldNoCopy(u.Object, "status", name)
		own, _ := is.([]any)
		was, _ := value.([]any)
		more := slices.DeleteFunc(slices.Clone(was), func(condition any) bool {
			m, _ := condition.(map[string]any)
			t, _ := m["type"].(string)
			_, reported := ConditionOf(u, t)

			return reported || t == ""
		})
		switch {
		case !ok:
		case !has:
			lacking[name] = value
		case name == "conditions" && len(more) > 0:
			lacking[name] = slices.Concat(own, more)
		}
	}

	return lacking
}

// StatusNames returns "status.a, status.b", for messages.
func StatusNames(names []string) string {
	fields := make([]string, len(names))
	for i, name := range names {
		fields[i] = fmt.Sprint("status.", name)
	}

	return strings.Join(fields, ", ")
}
