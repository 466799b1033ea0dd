package xp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// UnknownConditions is the TrueConditions of what a backup says nothing of.
const UnknownConditions TrueConditions = "?"

// A TrueConditions names the conditions of a composed resource that were True when it was backed
// up, such as "Ready,Synced".
type TrueConditions string

// TrueConditionsOf returns the conditions of u that are True, of those that say how Crossplane and
// functions find it.
func TrueConditionsOf(u *unstructured.Unstructured) TrueConditions {
	var well []string
	for _, t := range []string{ConditionReady, ConditionSynced} {
		if c, ok := ConditionOf(u, t); ok && c.Status == "True" {
			well = append(well, t)
		}
	}

	return TrueConditions(strings.Join(well, ","))
}

// Missing returns the conditions that were True and are not now.
func (w TrueConditions) Missing(u *unstructured.Unstructured) []string {
	if w == "" || w == UnknownConditions {
		return nil
	}

	return slices.DeleteFunc(strings.Split(string(w), ","), func(t string) bool {
		c, ok := ConditionOf(u, t)

		return ok && c.Status == "True"
	})
}

// SetSavedConditions writes how well each composed resource is onto the backup's copy of an XR, as
// SetRestoreFirst does.
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

// SavedConditions returns how well each of the refs was, in their order, from what
// SetSavedConditions wrote; nil if there is nothing that can be read.
func SavedConditions(u *unstructured.Unstructured, refs []Ref) []TrueConditions {
	list, ok, err := field(u, FieldConditions)
	if err != nil || !ok {
		return nil
	}
	well := map[ID]TrueConditions{}
	for _, entry := range list {
		r, err := refFrom(entry)
		m, _ := entry.(map[string]any)
		conditions, ok := m["conditions"].(string)
		if err != nil || !ok {
			return nil
		}
		// What a namespaced XR composes is where the XR is restored to.
		if u.GetNamespace() != "" {
			r.Namespace = u.GetNamespace()
		}
		well[r.ID()] = TrueConditions(conditions)
	}
	found := make([]TrueConditions, len(refs))
	for i, r := range refs {
		if found[i], ok = well[r.ID()]; !ok {
			found[i] = UnknownConditions
		}
	}

	return found
}

// NeededStatus returns the fields of the status of u, as it was backed up, that nothing writes anew
// before somebody reads them: those that functions have written on an XR, and may read at the next
// reconcile, all of what an XR composed if its provider or Crossplane had not reconciled it, and
// where upjet finds the external resource of an MR.
func NeededStatus(u *unstructured.Unstructured) []string {
	status, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status")
	fields, _ := status.(map[string]any)
	names := slices.Sorted(maps.Keys(fields))
	synced, _ := ConditionOf(u, ConditionSynced)
	if IsComposed(u) && (IsManaged(u) || IsComposite(u)) && synced.Status != "True" {
		return names
	}
	if !IsComposite(u) {
		return slices.DeleteFunc(names, func(name string) bool { return name != "atProvider" || !IsUpjet(u) })
	}

	return slices.DeleteFunc(names, isCrossplaneStatus)
}

// isCrossplaneStatus reports whether Crossplane itself writes a field of the status of XRs
// (crossplane-runtime pkg/xcrd/schemas.go).
func isCrossplaneStatus(name string) bool {
	switch name {
	case "conditions", "connectionDetails", "claimConditionTypes", "lastHandledReconcileAt", "crossplane":
		return true
	default:
		return false
	}
}

// MissingStatus returns those of the named fields that the status of u does not have.
func MissingStatus(u *unstructured.Unstructured, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "status", name)

		return ok
	})
}

// StatusNames is for messages: status.a, status.b.
func StatusNames(names []string) string {
	fields := make([]string, len(names))
	for i, name := range names {
		fields[i] = fmt.Sprint("status.", name)
	}

	return strings.Join(fields, ", ")
}
