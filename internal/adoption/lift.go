package adoption

import (
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// maxManagers is how many bytes a mark may use for the managers of changed settings. A user who can
// write an object can add any number of managers.
const maxManagers = 2 << 10

// lift plans to lift the hold of u and give the user's own settings back, with managedFields as if
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
func (k Key) lift(u *unstructured.Unstructured, h *Hold, step string) Change {
	if h.Freed {
		return Change{Target: u, Patch: freed(u, h), Step: step}
	}
	p := releasePatch(u, h)
	changed := changedBy(u, p)
	managers := managersBesides(u)
	of, stray := append(managersOf(managers, changed), managersIn(h)...), len(managers) < len(entriesOf(u))
	if c, ok := liftAtOnce(Change{Target: u, Patch: p, Step: step}, h, changed, of, stray); ok {
		return c
	}
	left := &Hold{
		Restore: h.Restore, Since: h.Since, Reason: reasonFreed + xp.ReleaseCommand(xp.RefTo(u)).String(),
		Polled: h.Polled, LastReported: h.LastReported, Freed: true,
	}
	left.Managers = packedManagers(of)
	if stray {
		left.Fields = h.Fields
	}
	mark, err := k.mark(xp.RefTo(u), left)
	if err != nil {
		return Change{Target: u, Patch: p, Step: step}
	}
	set(p, mark, "metadata", "annotations", AnnotationHold)

	return Change{Target: u, Patch: p, Step: "give its own settings back before the mark of its hold goes"}
}

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
	case len(of) == 1 && writesAs(u, of[0], changed):
		c.Manager, _ = of[0]["manager"].(string)

		return c, true
	case len(of) == 0 && areDefaults(u, c.Patch, changed):
		c.Defaults = changed
		_, ok = c.Applied()

		return c, ok
	default:
		return c, false
	}
}

// packedManagers returns the managers in the form of Hold.Managers; nil if they are too large.
func packedManagers(managers []map[string]any) []any {
	var all []any
	for _, m := range managers {
		all = append(all, m)
	}
	if b, err := json.Marshal(all); err != nil || len(b) > maxManagers {
		return nil
	}

	return all
}

func managersIn(h *Hold) []map[string]any {
	var managers []map[string]any
	for _, m := range h.Managers {
		if manager, ok := m.(map[string]any); ok {
			managers = append(managers, manager)
		}
	}

	return managers
}

// repin adds to the patch that u is pinned again. The hold keeps the policy that another writer has
// set meanwhile, and its managers.
func (h *Hold) repin(u *unstructured.Unstructured, p map[string]any) {
	inst := xp.Instance{Unstructured: u}
	path := inst.UpdatePolicyPath()
	h.Managers = append(h.Managers, packedManagers(managersOf(managersBesides(u), [][]string{path}))...)
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
		h.Managers = packedManagers(managersOf(managersBesides(u), [][]string{{"metadata", "annotations", xp.AnnotationPaused}}))
	}
}

// observePatch returns the patch that lets the provider of an MR observe it.
func (k Key) observePatch(u *unstructured.Unstructured, h *Hold) map[string]any {
	annotations := map[string]any{xp.AnnotationPaused: nil}
	after := *h
	after.keepPauseManagers(u)
	if mark, err := k.mark(xp.RefTo(u), &after); err == nil && len(after.Managers) > 0 {
		annotations[AnnotationHold] = mark
	}

	return patch(u, annotations)
}

// reasonFreed is the reason of the mark on an object that has its own settings back.
const reasonFreed = "it has its own settings back and is not held any more; only this mark is left. If nothing takes it off, run: "

// changedBy returns the paths of the hold's fields that the patch sets, not removes, to other
// values.
func changedBy(u *unstructured.Unstructured, p map[string]any) [][]string {
	var changed [][]string
	for _, path := range managedPaths(u) {
		value, ok, err := unstructured.NestedFieldNoCopy(p, path...)
		if !ok || err != nil || value == nil {
			continue
		}
		if is, ok, _ := unstructured.NestedFieldNoCopy(u.Object, path...); !ok || !isEqual(is, value) {
			changed = append(changed, path)
		}
	}

	return changed
}

func isEqual(is, value any) bool {
	if list, ok := value.([]string); ok {
		all := make([]any, 0, len(list))
		for _, s := range list {
			all = append(all, s)
		}

		return reflect.DeepEqual(is, all)
	}

	return reflect.DeepEqual(is, value)
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

	return Change{Target: u, Patch: freed(u, h), Step: stepFreed}, true
}

// WritesManagers reports whether the next change of the held object u can write its managedFields,
// so that they must be known completely.
func WritesManagers(u *unstructured.Unstructured) bool { return IsFreed(u) || managesMore(u) }

// IsFreed reports whether the mark of u says that u has its own settings back. Any user who can
// write u can write that.
func IsFreed(u *unstructured.Unstructured) bool {
	return strings.Contains(xp.Annotation(u, AnnotationHold), `"freed":true`)
}
