package adoption

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// operationApply is that of an entry of managedFields for what was applied server-side.
const operationApply = "Apply"

// Applied returns the configuration that does the same as the patch, if this plugin applies it
// server-side with force. What nobody else manages is gone when it is not applied any more, or is
// what the API server has for it by default, and nobody manages that then; a patch would have this
// plugin manage what it gives back. ok is false if the change has to be a patch: the hold on the
// object was not put there like that, or somebody else manages what is to go, too.
func (c Change) Applied() (configuration map[string]any, ok bool) {
	u := c.Target
	ours, others, ok := appliedBy(u)
	if !ok || c.Manager != "" || !isWithin(c.Patch, managedPaths(u)) {
		return nil, false
	}
	configuration = map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(),
		// With its UID it is not created if it is gone.
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

// applied returns what is to be applied of a field; nil if it is not any more. ok is false if that
// would not do what the patch does.
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

// isDefault reports whether a field is one of the Defaults.
func (c Change) isDefault(path []string) bool {
	return slices.ContainsFunc(c.Defaults, func(p []string) bool { return slices.Equal(p, path) })
}

// appliedBy returns the entry of managedFields under which this plugin has applied a hold
// server-side, and all others, of which one can be what it has patched: that loses what is applied
// with another value. ok is false if it has not applied one, or has applied something else besides
// or in another version.
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

// isWithin reports whether all that a patch changes, or a set of fields has, is one of some fields,
// but for the version that a patch is for.
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

// areDefaults reports whether each of the fields that a patch changes becomes what the API server
// has for it by default, unless an XRD says something else.
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
