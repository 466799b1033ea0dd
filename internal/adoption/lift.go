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

// maxManagers is how many bytes of who has managed the settings that a hold changed are kept.
// Whoever can write an object can write any number of them.
const maxManagers = 2 << 10

// lift plans to take the hold off u and to give the person's own settings back, so that nobody can
// tell by its managedFields that it was held. An API server has whoever changes a field manage it,
// and nobody else. So a setting that is given back is written under the name of who manages it, if
// that is one, and they have not applied it server-side; one that nobody manages, as the API server
// has set it by default, comes back by itself when this plugin does not apply its own any more.
// Then one request does. Otherwise it takes two: the settings come back, with a mark that says who
// managed them, and then the mark goes, with all managedFields as they are to be. If nothing comes
// between, that is one poll; if something does, the mark is there to go on with.
func (k Key) lift(u *unstructured.Unstructured, h *Hold, step string) Change {
	if h.Freed {
		return Change{Target: u, Patch: freed(u, h), Step: step}
	}
	p := releasePatch(u, h)
	changed := changedBy(u, p)
	all := entriesOf(u)
	managers := managersBesides(u)
	of, stray := append(managersOf(managers, changed), managersIn(h)...), len(managers) < len(all)
	switch {
	case len(all) == 0, len(changed) == 0 && !stray: // Nobody is told who manages what, or it stays as it is.
		return Change{Target: u, Patch: p, Step: step}
	case len(of) == 1 && !stray && writesAs(u, of[0], changed):
		manager, _ := of[0]["manager"].(string)

		return Change{Target: u, Patch: p, Step: step, Manager: manager}
	case len(of) == 0 && !stray && areDefaults(u, p, changed):
		c := Change{Target: u, Patch: p, Step: step, Defaults: changed}
		if _, ok := c.Applied(); ok {
			return c
		}
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

// packedManagers are the managers as a mark has them; none if they are too many.
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

// managersIn returns those that a mark has.
func managersIn(h *Hold) []map[string]any {
	var managers []map[string]any
	for _, m := range h.Managers {
		if manager, ok := m.(map[string]any); ok {
			managers = append(managers, manager)
		}
	}

	return managers
}

// repin adds to a patch that u is to be pinned again, and has the hold keep what somebody has set
// meanwhile, and who manages that.
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

// leavePause has the hold keep who manages the person's own value of the pause, which is removed
// with the hold's until that comes back.
func (h *Hold) leavePause(u *unstructured.Unstructured) {
	if h.Paused != nil {
		h.Managers = packedManagers(managersOf(managersBesides(u), [][]string{{"metadata", "annotations", xp.AnnotationPaused}}))
	}
}

// observePatch is the patch that lets the provider of an MR observe it.
func (k Key) observePatch(u *unstructured.Unstructured, h *Hold) map[string]any {
	annotations := map[string]any{xp.AnnotationPaused: nil}
	after := *h
	after.leavePause(u)
	if mark, err := k.mark(xp.RefTo(u), &after); err == nil && len(after.Managers) > 0 {
		annotations[AnnotationHold] = mark
	}

	return patch(u, annotations)
}

// reasonFreed is why what has its own settings back is still marked.
const reasonFreed = "it has its own settings back and is not held any more; only this mark is left. If nothing takes it off, run: "

// changedBy returns which of the fields that a hold changes a patch gives another value.
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

// isEqual reports whether a value of an object is that of a patch.
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

// managersBesides returns the managedFields of u but for what Velero leaves that is stopped.
func managersBesides(u *unstructured.Unstructured) []map[string]any {
	return slices.DeleteFunc(entriesOf(u), func(m map[string]any) bool { return isStray(u, m) })
}

// managersOf returns who else manages any of some fields, with no more of their fields than these.
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

// writesAs reports whether who manages all of some fields is who manages them after they were
// patched under their name.
func writesAs(u *unstructured.Unstructured, manager map[string]any, fields [][]string) bool {
	for _, path := range fields {
		if _, ok := managedAt(manager, path); !ok {
			return false
		}
	}
	name, _ := manager["manager"].(string)

	return name != "" && manager["operation"] == "Update" && manager["apiVersion"] == u.GetAPIVersion()
}

// freed is the patch that takes the mark off what has its own settings back, and has those manage
// them who did before, unless somebody has changed one since.
func freed(u *unstructured.Unstructured, h *Hold) map[string]any {
	p := patch(u, map[string]any{AnnotationHold: nil})
	entries := entriesOf(u)
	if len(entries) == 0 {
		return p
	}
	ours := ownEntry(entries)
	entries = slices.DeleteFunc(entries, func(m map[string]any) bool { return isOwn(m) || isStray(u, m) })
	if IsStray(u) {
		entries = withSince(unpackManagers(h.Fields), entries)
	}
	for _, manager := range managersIn(h) {
		entries = manageAgain(entries, manager, ours, managedPaths(u))
	}
	set(p, withEntries(entries), "metadata", "managedFields")

	return p
}

// withEntries are managedFields as they are written. An API server takes an empty list for none
// that are written.
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

// ownEntry returns one entry of managedFields with all the fields that this plugin has applied or
// patched; nil if there are none.
func ownEntry(entries []map[string]any) map[string]any {
	all := map[string]any{}
	for _, m := range entries {
		if fields, ok := m["fieldsV1"].(map[string]any); ok && isOwn(m) {
			all = union(all, fields)
		}
	}

	return withFields(map[string]any{}, all)
}

// manageAgain has a manager manage those fields again that are still as this plugin has written
// them.
func manageAgain(entries []map[string]any, manager, ours map[string]any, paths [][]string) []map[string]any {
	fields := map[string]any{}
	for _, path := range paths {
		theirs, was := managedAt(manager, path)
		if _, written := managedAt(ours, path); was && written {
			set(fields, theirs, fieldNames(path)...)
		}
		// What they are in was made with them, if it was not there.
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

// managesItself reports whether an entry of managedFields has a field besides what is in that.
func managesItself(entry map[string]any, path []string) bool {
	_, ok, err := unstructured.NestedFieldNoCopy(entry, append(append([]string{"fieldsV1"}, fieldNames(path)...), selfField)...)

	return ok && err == nil
}

// withFields is an entry of managedFields with other fields; nil if these are none.
func withFields(entry, fields map[string]any) map[string]any {
	if len(fields) == 0 {
		return nil
	}
	entry = maps.Clone(entry)
	entry["fieldsV1"] = fields

	return entry
}

// isSame reports whether two entries of managedFields are of the same manager, whenever they were
// written.
func isSame(a, b map[string]any) bool {
	for _, key := range []string{"manager", "operation", "apiVersion", "subresource"} {
		x, _ := a[key].(string)
		if y, _ := b[key].(string); x != y {
			return false
		}
	}

	return true
}

// union returns the fields of both of two sets, as managedFields have them. It changes neither.
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

// selfField is how a set of fields has the field that it is of, besides what is in that.
const selfField = "."

// wholeField returns a set of fields that says that the field which it is of is one of them, where
// it is the only one.
func wholeField(fields map[string]any) map[string]any {
	if len(fields) == 0 {
		return map[string]any{selfField: map[string]any{}}
	}

	return fields
}

// Finish plans to take the mark off what has its own settings back; ok is false if u is not that.
// It does not verify the mark.
func Finish(u *unstructured.Unstructured) (c Change, ok bool) {
	h, err := HoldOf(u)
	if err != nil || h == nil || !h.Freed {
		return Change{}, false
	}

	return Change{Target: u, Patch: freed(u, h), Step: stepFreed}, true
}

// IsFreed reports whether u has a mark that says that it has its own settings back. Whoever can
// write u can write that.
func IsFreed(u *unstructured.Unstructured) bool {
	return strings.Contains(xp.Annotation(u, AnnotationHold), `"freed":true`)
}

// WithoutOwn is the patch that has this plugin manage nothing of u any more; ok is false if it does
// not.
func WithoutOwn(u *unstructured.Unstructured) (p map[string]any, ok bool) {
	entries := entriesOf(u)
	others := slices.DeleteFunc(slices.Clone(entries), isOwn)
	if len(others) == len(entries) {
		return nil, false
	}

	return managersPatch(u, others), true
}
