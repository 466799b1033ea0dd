package adoption

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// maxManagers is how many bytes a mark may use for the managers of changed settings. A user who can
// write an object can add any number of managers.
const maxManagers = 2 << 10

// Lift plans to lift the hold of u and give the user's own settings back, with managedFields as if
// u had never been held. The API server makes the writer of a field its only manager. So there are
// four ways:
//
// A setting that one manager had, with an Update, is written under that manager's name. A setting
// that has no manager, since it is the API server's default, returns when this plugin no longer
// applies its own. If only annotations are removed, and this plugin manages more than the hold, the
// same patch writes the managedFields. Each takes one request.
//
// Otherwise it takes two: one writes the settings, and a mark with their managers; the next removes
// the mark and writes the managedFields. Both are usually in one poll; after an interruption the
// mark says how to continue.
func (k Key) Lift(u *unstructured.Unstructured, h *Hold, step string) Change {
	if h.Freed {
		return Change{Target: u, Patch: freed(u, h), Step: step}
	}
	p := ReleasePatch(u, h)
	changed := changedBy(u, p)
	managers := managersBesides(u)
	of, stray := append(managersOf(managers, changed), h.Managers...), len(managers) < len(entriesOf(u))
	if c, ok := liftAtOnce(Change{Target: u, Patch: p, Step: step}, h, changed, of, stray); ok {
		return c
	}
	left := &Hold{
		Restore: h.Restore, Since: h.Since, Reason: reasonFreed + xp.ReleaseCommand(xp.RefTo(u)).String(),
		Polled: h.Polled, LastReported: h.LastReported, Freed: true, Managers: fewManagers(of),
	}
	if stray {
		left.Fields = h.Fields
	}
	set(p, k.mark(xp.RefTo(u), left), "metadata", "annotations", AnnotationHold)

	return Change{Target: u, Patch: p, Step: "give its own settings back before the mark of its hold goes"}
}

// reasonFreed is the reason of the mark on an object that has its own settings back.
const reasonFreed = "it has its own settings back and is not held any more; only this mark is left. If nothing takes it off, run: "

// liftAtOnce returns the change that lifts a hold in one request; ok is false if it takes two. c is
// the change without its managers, changed are the fields that it sets to other values, and of are
// their managers before the hold. stray is set if an entry of managedFields isStray.
func liftAtOnce(c Change, h *Hold, changed [][]string, of []map[string]any, stray bool) (lift Change, ok bool) {
	u := c.Target
	switch {
	case len(changed) == 0 && len(of) == 0 && len(c.Patch) == 1 && managesMore(u):
		// Outside of the metadata a removed field could get its default, with this plugin as manager.
		set(c.Patch, managersAfter(u, h), "metadata", "managedFields")

		return c, true
	case stray, managesMore(u):
		return c, false
	case len(entriesOf(u)) == 0, len(changed) == 0: // No managers are known, or they do not change.
		return c, true
	case len(of) == 0 && areDefaults(u, c.Patch, changed):
		c.Defaults = changed
		_, ok = c.Applied()

		return c, ok
	default:
		c.Manager = writerOf(u, of, changed)

		return c, c.Manager != ""
	}
}

// fewManagers returns the managers; nil if they are too large for a mark.
func fewManagers(managers []map[string]any) []map[string]any {
	if b, err := json.Marshal(managers); err != nil || len(b) > maxManagers {
		return nil
	}

	return managers
}

// repin adds to the patch that u is pinned again. The hold keeps the policy that another writer has
// set meanwhile, and its managers.
func (h *Hold) repin(u *unstructured.Unstructured, p map[string]any) {
	inst := xp.Instance{Unstructured: u}
	path := inst.UpdatePolicyPath()
	h.Managers = append(h.Managers, fewManagers(managersOf(managersBesides(u), [][]string{path}))...)
	h.UpdatePolicy = nil
	if policy, ok := inst.UpdatePolicy(); ok {
		h.UpdatePolicy = &policy
	}
	set(p, xp.UpdateManual, path...)
}

// keepPauseManagers makes the hold keep the managers of the user's own pause. That pause is removed
// together with the hold's until the release.
func (h *Hold) keepPauseManagers(u *unstructured.Unstructured) {
	if h.Paused != nil {
		h.Managers = fewManagers(managersOf(managersBesides(u), [][]string{{"metadata", "annotations", xp.AnnotationPaused}}))
	}
}

// ObservePatch returns the patch that lets the provider of an MR observe it.
func (k Key) ObservePatch(u *unstructured.Unstructured, h *Hold) map[string]any {
	annotations := map[string]any{xp.AnnotationPaused: nil}
	after := *h
	after.keepPauseManagers(u)
	if len(after.Managers) > 0 {
		annotations[AnnotationHold] = k.mark(xp.RefTo(u), &after)
	}

	return patch(u, annotations)
}

// changedBy returns the paths of the hold's fields that the patch sets, not removes, to other
// values.
func changedBy(u *unstructured.Unstructured, p map[string]any) [][]string {
	return slices.DeleteFunc(managedPaths(u), func(path []string) bool {
		value, ok, err := unstructured.NestedFieldNoCopy(p, path...)
		is, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)

		return !ok || err != nil || value == nil || reflect.DeepEqual(is, value)
	})
}

// freed returns the patch that removes the mark of an object which has its own settings back. It
// returns the fields to their former managers, unless another writer has changed them since.
func freed(u *unstructured.Unstructured, h *Hold) map[string]any {
	p := patch(u, map[string]any{AnnotationHold: nil})
	if len(entriesOf(u)) > 0 {
		set(p, managersAfter(u, h), "metadata", "managedFields")
	}

	return p
}

// Finish plans to remove the mark of an object that has its own settings back. ok is false for any
// other object. It does not verify the mark.
func Finish(u *unstructured.Unstructured) (c Change, ok bool) {
	h, err := HoldOf(u)
	if err != nil || h == nil || !h.Freed {
		return Change{}, false
	}

	return Change{Target: u, Patch: freed(u, h), Step: StepFreed}, true
}

// WritesManagers reports whether the next change of the held object u can write its managedFields,
// so that they must be known completely. Any user who can write u can write that it isFreed.
func WritesManagers(u *unstructured.Unstructured) bool { return isFreed(u) || managesMore(u) }

// isFreed reports whether the mark of u says that u has its own settings back.
func isFreed(u *unstructured.Unstructured) bool {
	return strings.Contains(xp.Annotation(u, AnnotationHold), `"freed":true`)
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
