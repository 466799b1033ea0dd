package hold

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Change is a change to one object.
type Change struct {
	// Target is the object and Patch the merge patch; nil if there is nothing to do now.
	Target *unstructured.Unstructured
	Patch  map[string]any
	// Configuration is what this plugin applies server-side in place of Patch, from Applied; nil if
	// it can't, or Applied was not called.
	Configuration map[string]any
	// Step describes the patch for the log.
	Step string
	// Manager is the field manager of the patch; "" stands for FieldManager.
	Manager string
	// Defaults are the fields of the patch without a manager that return to the API server's
	// default.
	Defaults [][]string
	// Warning is the text of an Event when the change is made; zero for none.
	Warning reason.Message
}

// Lifts reports whether the change removes a mark.
func (c Change) Lifts() bool {
	mark, changed := c.mark()

	return changed && mark == nil
}

// Marks reports whether the change writes a mark.
func (c Change) Marks() bool {
	mark, _ := c.mark()

	return mark != nil
}

func (c Change) mark() (mark any, changed bool) {
	metadata, _ := c.Patch["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	mark, changed = annotations[Annotation]

	return mark, changed
}

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
	if !keepsRest(u, configuration, ours, others) {
		return nil, false
	}

	return configuration, true
}

// keepsRest reports whether all other fields of u stay when this plugin applies only the
// configuration. A map in which no manager has a field any more is removed, with the fields in it
// that have no manager (structured-merge-diff merge/update.go, prune). An entry of another version
// does not count: the API server drops those of versions that it does not serve.
func keepsRest(u *unstructured.Unstructured, configuration, ours map[string]any, others []map[string]any) bool {
	for _, path := range managedPaths(u) {
		for n := 1; n < len(path) && manages(ours, path); n++ {
			parent := path[:n:n]
			_, stays, _ := unstructured.NestedFieldNoCopy(configuration, parent...)
			if stays || slices.ContainsFunc(others, func(m map[string]any) bool { return m["apiVersion"] == u.GetAPIVersion() && manages(m, parent) }) {
				continue
			}
			fields, _, _ := unstructured.NestedFieldNoCopy(u.Object, parent...)
			rest, _ := fields.(map[string]any)
			for name := range rest {
				if !manages(ours, append(parent, name)) {
					return false
				}
			}
		}
	}

	return true
}

// applied returns the value to apply for a field; nil if the field is not to be applied any more.
// ours is this plugin's entry of managedFields, others are all other entries. ok is false if that
// has another result than the patch.
func (c Change) applied(path []string, ours map[string]any, others []map[string]any) (value any, ok bool) {
	isPath := func(p []string) bool { return slices.Equal(p, path) }
	owned := manages(ours, path)
	is, there, _ := unstructured.NestedFieldNoCopy(c.Target.Object, path...)
	wanted, changes, _ := unstructured.NestedFieldNoCopy(c.Patch, path...)
	switch {
	case !changes && owned:
		return is, true
	case !changes:
		return nil, true
	case wanted == nil || slices.ContainsFunc(c.Defaults, isPath):
		return nil, !there || owned && !slices.ContainsFunc(others, func(m map[string]any) bool { return manages(m, path) })
	case owned || !reflect.DeepEqual(is, wanted):
		return wanted, true
	default:
		return nil, true
	}
}

// appliedBy returns the entry of managedFields under which this plugin has applied a hold
// server-side, and all other entries. The other entries can include one of a patch by this plugin:
// that entry loses a field when the field is applied with another value. ok is false if this plugin
// has not applied a hold, or its entry is of another version or has other fields too.
func appliedBy(u *unstructured.Unstructured) (ours map[string]any, others []map[string]any, ok bool) {
	others = entriesOf(u)
	n := slices.IndexFunc(others, func(m map[string]any) bool {
		return isOwn(m) && m["operation"] == operationApply && m["apiVersion"] == u.GetAPIVersion()
	})
	if n < 0 {
		return nil, nil, false
	}
	ours = others[n]

	return ours, slices.Delete(others, n, n+1), isOfHold(u, ours)
}

// areDefaults reports whether the patch sets each of the changed fields to the API server's
// default. It assumes that the XRD defines no other default.
func areDefaults(u *unstructured.Unstructured, p map[string]any, changed [][]string) bool {
	defaults := map[string]any{}
	set(defaults, xp.UpdateAutomatic, xp.Instance{Unstructured: u}.UpdatePolicyPath()...)
	set(defaults, []any{xp.PolicyAll}, "spec", fieldPolicies)

	return !slices.ContainsFunc(changed, func(path []string) bool {
		value, _, _ := unstructured.NestedFieldNoCopy(p, path...)
		byDefault, _, _ := unstructured.NestedFieldNoCopy(defaults, path...)

		return !reflect.DeepEqual(value, byDefault)
	})
}
