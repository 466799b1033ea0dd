package hold

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

// StepFreed is the step that removes the mark of an object which has its own settings back.
const StepFreed = "its own settings are back; take the mark of its hold off"

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
	set(p, k.mark(xp.RefTo(u), left), "metadata", "annotations", Annotation)

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
	p := patch(u, map[string]any{Annotation: nil})
	if len(entriesOf(u)) > 0 {
		set(p, managersAfter(u, h), "metadata", "managedFields")
	}

	return p
}

// Finish plans to remove the mark of an object that has its own settings back. ok is false for any
// other object. It does not verify the mark.
func Finish(u *unstructured.Unstructured) (c Change, ok bool) {
	h, err := Of(u)
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
	return strings.Contains(xp.Annotation(u, Annotation), `"freed":true`)
}
