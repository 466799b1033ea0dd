package adoption

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const operationApply = "Apply"

// Applied returns the configuration which this plugin can apply server-side, with force, in place
// of the merge patch, with the same result. A field that only this plugin manages and no longer
// applies is removed, or gets the API server's default, and then has no manager. A merge patch
// would make this plugin the manager of what it gives back.
//
// ok is false if the change must be a patch: the hold was not applied server-side, or another
// writer manages a field that is to be removed, too.
func (c Change) Applied() (configuration map[string]any, ok bool) {
	u := c.Target
	ours, others, ok := appliedBy(u)
	if !ok || c.Manager != "" || !isWithin(c.Patch, managedPaths(u)) {
		return nil, false
	}
	configuration = map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(),
		// The UID keeps the API server from creating an object that is gone.
		"metadata": map[string]any{"name": u.GetName(), "uid": string(u.GetUID()), "resourceVersion": u.GetResourceVersion()},
	}
	for _, path := range managedPaths(u) {
		value, ok := c.applied(path, ours, others)
		if !ok {
			return nil, false
		}
		if value != nil {
			set(configuration, value, path...)
		}
	}

	return configuration, true
}

// applied returns the value to apply for a field; nil if the field is not to be applied any more.
// ours is this plugin's entry of managedFields, others are all other entries. ok is false if that
// has another result than the patch.
func (c Change) applied(path []string, ours map[string]any, others []map[string]any) (value any, ok bool) {
	_, owned := managedAt(ours, path)
	is, there, _ := unstructured.NestedFieldNoCopy(c.Target.Object, path...)
	wanted, changes, _ := unstructured.NestedFieldNoCopy(c.Patch, path...)
	switch {
	case !changes && owned:
		return is, true
	case !changes:
		return nil, true
	case wanted == nil || c.isDefault(path):
		return nil, !there || owned && !slices.ContainsFunc(others, func(m map[string]any) bool {
			_, manages := managedAt(m, path)

			return manages
		})
	case owned || !isEqual(is, wanted):
		return wanted, true
	default:
		return nil, true
	}
}

func (c Change) isDefault(path []string) bool {
	return slices.ContainsFunc(c.Defaults, func(p []string) bool { return slices.Equal(p, path) })
}

// appliedBy returns the entry of managedFields under which this plugin has applied a hold
// server-side, and all other entries. The other entries can include one of a patch by this plugin:
// that entry loses a field when the field is applied with another value. ok is false if this plugin
// has not applied a hold, or its entry is of another version or has other fields too.
func appliedBy(u *unstructured.Unstructured) (ours map[string]any, others []map[string]any, ok bool) {
	for _, m := range entriesOf(u) {
		if ours == nil && isOwn(m) && m["operation"] == operationApply && m["apiVersion"] == u.GetAPIVersion() {
			ours = m
		} else {
			others = append(others, m)
		}
	}
	fields, _ := ours["fieldsV1"].(map[string]any)
	var held [][]string
	for _, path := range managedPaths(u) {
		held = append(held, fieldNames(path))
	}

	return ours, others, ours != nil && isWithin(fields, held)
}

// isWithin reports whether everything that a patch changes, or that a set of managedFields has, is
// at or below one of the given paths. It ignores the resourceVersion of a patch.
func isWithin(m map[string]any, fields [][]string) bool {
	for name, value := range m {
		var in [][]string
		for _, path := range fields {
			if path[0] == name {
				in = append(in, path[1:])
			}
		}
		next, isMap := value.(map[string]any)
		switch {
		case slices.ContainsFunc(in, func(rest []string) bool { return len(rest) == 0 }), name == "resourceVersion":
		case len(in) == 0, !isMap, !isWithin(next, in):
			return false
		}
	}

	return true
}

// areDefaults reports whether the patch sets each of the changed fields to the API server's
// default. It assumes that the XRD defines no other default.
func areDefaults(u *unstructured.Unstructured, p map[string]any, changed [][]string) bool {
	return !slices.ContainsFunc(changed, func(path []string) bool {
		value, _, _ := unstructured.NestedFieldNoCopy(p, path...)
		switch {
		case slices.Equal(path, xp.Instance{Unstructured: u}.UpdatePolicyPath()):
			return value != xp.UpdateAutomatic
		case slices.Equal(path, []string{"spec", fieldPolicies}):
			return !isEqual([]any{xp.PolicyAll}, value)
		default:
			return true
		}
	})
}
