package adoption

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
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
	case len(entriesOf(u)) == 0, len(changed) == 0 && !stray: // No managers are known, or they do not change.
		return c, true
	case stray:
		return c, false
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

// managersBesides returns the managedFields of u except those that isStray.
func managersBesides(u *unstructured.Unstructured) []map[string]any {
	return slices.DeleteFunc(entriesOf(u), func(m map[string]any) bool { return isStray(u, m) })
}

// managersOf returns the entries of other managers that have any of the given fields, reduced to
// these. It leaves out this plugin and subresources.
func managersOf(managers []map[string]any, fields [][]string) []map[string]any {
	var of []map[string]any
	for _, m := range managers {
		if isOwn(m) || m["subresource"] != nil && m["subresource"] != "" {
			continue
		}
		theirs := map[string]any{}
		for _, path := range fields {
			if value, ok := managedAt(m, path); ok {
				set(theirs, value, fieldNames(path)...)
			}
		}
		if m = withFields(m, theirs); m != nil {
			of = append(of, m)
		}
	}

	return of
}

// writesAs reports whether a patch under the manager's name leaves the manager's entry with all of
// the fields: it has them all now, by an Update in u's version.
func writesAs(u *unstructured.Unstructured, manager map[string]any, fields [][]string) bool {
	for _, path := range fields {
		if _, ok := managedAt(manager, path); !ok {
			return false
		}
	}
	name, _ := manager["manager"].(string)

	return name != "" && manager["operation"] == "Update" && manager["apiVersion"] == u.GetAPIVersion()
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

// managersAfter returns the managedFields of u after its hold.
func managersAfter(u *unstructured.Unstructured, h *Hold) []any {
	entries := entriesOf(u)
	ours := ownEntry(entries)
	entries = slices.DeleteFunc(entries, func(m map[string]any) bool { return isOwn(m) || isStray(u, m) })
	if IsStray(u) {
		entries = withSince(unpackManagers(h.Fields), entries)
	}
	for _, manager := range managersIn(h) {
		entries = returnFields(entries, manager, ours, managedPaths(u))
	}

	return withEntries(entries)
}

// withEntries returns managedFields to write. The API server ignores an empty list, so an empty
// entry takes its place and clears them.
func withEntries(entries []map[string]any) []any {
	list := make([]any, 0, len(entries)+1)
	for _, m := range entries {
		list = append(list, m)
	}
	if len(list) == 0 {
		list = append(list, map[string]any{})
	}

	return list
}

// ownEntry returns one entry with all fields of this plugin; nil if there are none.
func ownEntry(entries []map[string]any) map[string]any {
	all := map[string]any{}
	for _, m := range entries {
		if fields, ok := m["fieldsV1"].(map[string]any); ok && isOwn(m) {
			all = union(all, fields)
		}
	}

	return withFields(map[string]any{}, all)
}

// returnFields returns the fields to a manager that are still as this plugin wrote them. paths are
// the candidates, ours is this plugin's entry.
func returnFields(entries []map[string]any, manager, ours map[string]any, paths [][]string) []map[string]any {
	fields := map[string]any{}
	for _, path := range paths {
		theirs, was := managedAt(manager, path)
		if _, written := managedAt(ours, path); was && written {
			set(fields, theirs, fieldNames(path)...)
		}
		// A parent that did not exist was created with the field, and belongs to the manager, too.
		for n := 1; n < len(path); n++ {
			if of := path[:n:n]; managesItself(manager, of) && managesItself(ours, of) {
				set(fields, map[string]any{}, append(fieldNames(of), selfField)...)
			}
		}
	}
	if len(fields) == 0 {
		return entries
	}

	for n, m := range entries {
		if !isSame(m, manager) {
			continue
		}
		m = maps.Clone(m)
		all, _ := m["fieldsV1"].(map[string]any)
		m["fieldsV1"] = union(all, fields)
		entries[n] = m

		return entries
	}

	return append(entries, withFields(manager, fields))
}

// managesItself reports whether an entry of managedFields has the field at path, not only children.
func managesItself(entry map[string]any, path []string) bool {
	_, ok, err := unstructured.NestedFieldNoCopy(entry, append(append([]string{"fieldsV1"}, fieldNames(path)...), selfField)...)

	return ok && err == nil
}

// withFields returns a copy of the entry with other fields; nil if there are no fields.
func withFields(entry, fields map[string]any) map[string]any {
	if len(fields) == 0 {
		return nil
	}
	entry = maps.Clone(entry)
	entry["fieldsV1"] = fields

	return entry
}

// isSame reports whether two entries of managedFields belong to the same manager.
func isSame(a, b map[string]any) bool {
	for _, key := range []string{"manager", "operation", "apiVersion", "subresource"} {
		x, _ := a[key].(string)
		if y, _ := b[key].(string); x != y {
			return false
		}
	}

	return true
}

// union returns the fields of either set, in the form of managedFields. It changes neither.
func union(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	for name, of := range b {
		inA, both := out[name].(map[string]any)
		inB, _ := of.(map[string]any)
		switch {
		case !both:
			out[name] = of
		case name != selfField:
			out[name] = union(wholeField(inA), wholeField(inB))
		}
	}

	return out
}

// selfField is the key by which a set of fields includes the parent field itself.
const selfField = "."

// wholeField returns a set of fields; an empty one stands for the parent field, which it adds.
func wholeField(fields map[string]any) map[string]any {
	if len(fields) == 0 {
		return map[string]any{selfField: map[string]any{}}
	}

	return fields
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

// managesMore reports whether this plugin manages more of u than a hold changes: the refresh of a
// standby writes the label of its restore.
func managesMore(u *unstructured.Unstructured) bool {
	var held [][]string
	for _, path := range managedPaths(u) {
		held = append(held, fieldNames(path))
	}

	return xp.HasAnnotation(u, AnnotationHold) && slices.ContainsFunc(entriesOf(u), func(m map[string]any) bool {
		fields, _ := m["fieldsV1"].(map[string]any)

		return isOwn(m) && !isWithin(fields, held)
	})
}

// IsFreed reports whether the mark of u says that u has its own settings back. Any user who can
// write u can write that.
func IsFreed(u *unstructured.Unstructured) bool {
	return strings.Contains(xp.Annotation(u, AnnotationHold), `"freed":true`)
}

// WithoutOwn returns the patch after which this plugin manages nothing of u; ok is false if it is
// so.
func WithoutOwn(u *unstructured.Unstructured) (p map[string]any, ok bool) {
	entries := entriesOf(u)
	others := slices.DeleteFunc(slices.Clone(entries), isOwn)
	if len(others) == len(entries) {
		return nil, false
	}

	return managersPatch(u, others), true
}
