package hold

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// stepUnheld is the step that removes what a hold has left on an object.
const stepUnheld = "nothing holds it any more; give its own settings back"

// fieldPolicies is the field of an MR that a hold can change.
const fieldPolicies = "managementPolicies"

// pinOf returns the update policy that u had before this plugin pinned it, according to its
// managedFields; nil if it had none. ok is false if u is not pinned, or another writer has set the
// same policy since.
func pinOf(u *unstructured.Unstructured) (own *string, ok bool) {
	inst := xp.Instance{Unstructured: u}
	if policy, _ := inst.UpdatePolicy(); policy != xp.UpdateManual {
		return nil, false
	}
	others, ours := othersAt(u, inst.UpdatePolicyPath())
	if !ours || slices.ContainsFunc(others, func(m map[string]any) bool { return isWrittenHere(u, m) }) {
		return nil, false
	}
	if len(others) > 0 { // Its manager in the backup had set another value, and the only other one is Automatic.
		return new(xp.UpdateAutomatic), true
	}

	return nil, true
}

// othersAt returns the other managers' entries with the field at path, and whether one is ours.
func othersAt(u *unstructured.Unstructured, path []string) (others []map[string]any, ours bool) {
	ours = slices.ContainsFunc(entriesOf(u), func(m map[string]any) bool { return isOwn(m) && manages(m, path) })

	return managersOf(managersBesides(u), [][]string{path}), ours
}

// HasPaused reports whether a hold paused u, according to its managedFields.
func HasPaused(u *unstructured.Unstructured) bool {
	if !xp.IsPaused(u) {
		return false
	}
	_, ours := othersAt(u, []string{"metadata", "annotations", xp.AnnotationPaused})

	return ours
}

// Unpin plans to give back the composition update policy of an object that is not held and still
// pinned. It does nothing during a hold's pause: else nothing would show whose pause that is.
func Unpin(u *unstructured.Unstructured) Change {
	own, pinned := pinOf(u)
	if !pinned || HasPaused(u) {
		return Change{}
	}
	path := xp.Instance{Unstructured: u}.UpdatePolicyPath()
	c := Change{Target: u, Patch: versioned(u), Step: stepUnheld}
	set(c.Patch, nullable(own), path...)
	if others, _ := othersAt(u, path); own != nil {
		c.Manager = writerOf(u, others, [][]string{path})
	}

	return c
}

// DropSettings plans to give back all settings that a hold has left on an XR or claim.
func DropSettings(u *unstructured.Unstructured) Change {
	if !HasPaused(u) {
		return Unpin(u)
	}
	own := u.DeepCopy()
	returnAnnotation(own, xp.AnnotationPaused, nil)
	c := Unpin(own)
	c.Target, c.Step = u, stepUnheld
	if c.Patch == nil {
		c.Patch = versioned(u)
	}
	set(c.Patch, nil, "metadata", "annotations", xp.AnnotationPaused)

	return c
}

// DropObservePolicy plans to remove the managementPolicies of a hold from an MR that is not held
// and had none of its own. ok is false for any other MR: its former policies are not known.
func DropObservePolicy(u *unstructured.Unstructured) (c Change, ok bool) {
	path := []string{"spec", fieldPolicies}
	others, ours := othersAt(u, path)
	if !ours || len(others) > 0 || !xp.OnlyObserves(u) {
		return Change{}, false
	}
	p := versioned(u)
	set(p, nil, path...)

	return Change{Target: u, Patch: p, Step: "nothing holds it any more; take the managementPolicies of its hold off"}, true
}

// WithoutHold returns a copy of an XR or claim, whose mark another writer has removed, without the
// pause and the pin of the hold. ok is false if its user has paused it, or its policy can't be set.
func WithoutHold(u *unstructured.Unstructured) (own *unstructured.Unstructured, ok bool) {
	own = u.DeepCopy()
	if HasPaused(u) {
		returnAnnotation(own, xp.AnnotationPaused, nil)
	}
	if xp.IsPaused(own) {
		return nil, false // An object that its user has paused stays as it is.
	}
	if policy, pinned := pinOf(u); pinned && returnUpdatePolicy(own, policy) != nil {
		return nil, false
	}

	return own, true
}

// LeftoverSetting returns the name of a field or annotation that a hold has left on an unmarked
// object, according to its managedFields; "" if there is none.
func LeftoverSetting(u *unstructured.Unstructured) string {
	switch _, pinned := pinOf(u); {
	case xp.HasAnnotation(u, Annotation):
	case HasPaused(u):
		return xp.AnnotationPaused
	case pinned:
		return "compositionUpdatePolicy"
	case xp.OnlyObserves(u):
		if _, ours := othersAt(u, []string{"spec", fieldPolicies}); ours {
			return fieldPolicies
		}
	}

	return ""
}

// LastWriterOf returns who probably removed the hold of u, or changed it while it was held: the last
// writer since its creation in this cluster, except controllers.
func LastWriterOf(u *unstructured.Unstructured) string {
	var last map[string]any
	for _, m := range entriesOf(u) {
		name := text(m, "manager")
		if name == "" || isOfSubresource(m) || isControllers(name) || !isWrittenHere(u, m) {
			continue
		}
		if last == nil || timeOf(m).After(timeOf(last)) {
			last = m
		}
	}
	if last == nil {
		return "its managedFields do not name that writer (kubectl get --show-managed-fields)"
	}

	return fmt.Sprintf("the last to write it was %q (%s, %s)", text(last, "manager"), text(last, "operation"), text(last, "time"))
}

// timeOf returns the time of an entry of managedFields; zero for none.
func timeOf(entry map[string]any) time.Time { return xp.ParseTime(text(entry, "time")) }

// isWrittenHere reports whether an entry of managedFields was written since the object was created
// in this cluster. Entries of the backup are older.
func isWrittenHere(u *unstructured.Unstructured, entry map[string]any) bool {
	written := timeOf(entry)

	return !written.IsZero() && !written.Before(u.GetCreationTimestamp().Time)
}

// isControllers reports whether a manager is Crossplane (crossplane
// internal/controller/apiextensions, FieldOwner), a provider, Velero, this plugin, or the API
// server's name for unknown managers (apimachinery pkg/util/managedfields).
func isControllers(manager string) bool {
	switch manager {
	case "before-first-apply", "ancient-changes", FieldManager, managerVelero, "crossplane":
		return true
	default:
		return strings.Contains(manager, "crossplane.io/") || strings.HasPrefix(manager, "provider")
	}
}
