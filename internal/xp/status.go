package xp

import (
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
		if IsTrue(u, t) {
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

	return slices.DeleteFunc(strings.Split(string(tc), ","), func(t string) bool { return IsTrue(u, t) })
}

// NeededStatus returns the fields of the status of u, from a backup and without a hold, that a
// restore must restore because no controller writes them, or one reads them before that:
//   - the whole status of an XR, claim or MR that its user has paused,
//   - what functions have written on an XR, and may read at the next reconcile,
//   - the whole status of a composed MR or XR that is not Synced,
//   - status.atProvider of an MR of upjet, which finds the external resource with it.
func NeededStatus(u *unstructured.Unstructured) []string {
	names := slices.Sorted(maps.Keys(Get[map[string]any](u.Object, "status")))
	switch managed, composite := IsManaged(u), IsComposite(u); {
	case (managed || composite || IsClaim(u)) && IsIdle(u), (managed || composite) && IsComposed(u) && !IsTrue(u, ConditionSynced):
		return names
	case !composite:
		return slices.DeleteFunc(names, func(name string) bool { return name != "atProvider" || !IsUpjet(u) })
	default:
		return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(crossplaneStatus, name) })
	}
}

// crossplaneStatus are the fields of the status of XRs that Crossplane writes (crossplane-runtime
// pkg/xcrd/schemas.go).
//
//nolint:gochecknoglobals // It is a constant list.
var crossplaneStatus = []string{"conditions", "connectionDetails", "claimConditionTypes", "lastHandledReconcileAt", "crossplane"}

// MissingStatus returns the named fields that the status of u lacks.
func MissingStatus(u *unstructured.Unstructured, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return Has(u.Object, "status", name) })
}

// LackingStatus returns those of the named fields of a status that u lacks. Of the conditions these
// are the types that u lacks, beside its own: the controller of a paused object reports the pause.
func LackingStatus(u *unstructured.Unstructured, names []string, status map[string]any) map[string]any {
	more := slices.DeleteFunc(slices.Clone(Get[[]any](status, "conditions")), func(condition any) bool {
		t := Get[string](condition, "type")
		_, reported := ConditionOf(u, t)

		return reported || t == ""
	})
	lacking := map[string]any{}
	for _, name := range names {
		switch value, ok := status[name]; {
		case !ok:
		case !Has(u.Object, "status", name):
			lacking[name] = value
		case name == "conditions" && len(more) > 0:
			lacking[name] = slices.Concat(Get[[]any](u.Object, "status", name), more)
		}
	}

	return lacking
}

// StatusNames returns "status.a, status.b", for messages.
func StatusNames(names []string) string {
	return "status." + strings.Join(names, ", status.")
}
