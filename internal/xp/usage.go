package xp

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Used returns what a Usage protects. It returns false if its selector has found nothing yet; the
// namespace is then that in which it looks.
func Used(usage *unstructured.Unstructured) (Ref, bool) { return usageRef(usage, "of") }

// User returns what uses the protected object. It returns false if the Usage names none, or if its
// selector has found nothing yet.
func User(usage *unstructured.Unstructured) (Ref, bool) { return usageRef(usage, "by") }

func usageRef(usage *unstructured.Unstructured, field string) (Ref, bool) {
	r, ok := refAt(usage, "spec", field)
	if !ok {
		return Ref{}, false
	}
	of := Get[map[string]any](usage.Object, "spec", field)
	r.Name = Get[string](of, "resourceRef", "name")
	r.Namespace = cmp.Or(Get[string](of, "resourceRef", "namespace"), Get[string](of, "resourceSelector", "namespace"), usage.GetNamespace())

	return r, r.Name != ""
}

// Uses returns what a Usage protects and what uses that, as far as the Usage names them. Crossplane
// writes the names when it has resolved the selectors.
func Uses(usage *unstructured.Unstructured) []Ref {
	var refs []Ref
	for _, field := range []string{"of", "by"} {
		if r, ok := usageRef(usage, field); ok {
			refs = append(refs, r)
		}
	}

	return refs
}

// Protected returns what a Usage protects and what uses that, for messages.
func Protected(usage *unstructured.Unstructured) string {
	used, ok := Used(usage)
	if !ok {
		return "what its selector finds"
	}
	if user, ok := User(usage); ok {
		return used.String() + " for " + user.String()
	}

	return used.String()
}

// UsageKinds returns the kinds for which IsUsage is true. No version of Crossplane serves all of
// them.
func UsageKinds() []schema.GroupKind {
	return []schema.GroupKind{
		{Group: GroupProtection, Kind: "Usage"},
		{Group: GroupProtection, Kind: "ClusterUsage"},
		{Group: GroupAPIExtensions, Kind: "Usage"},
	}
}

// HasDeletionAttempt reports whether a Usage has refused the deletion of u.
func HasDeletionAttempt(u *unstructured.Unstructured) bool {
	return HasAnnotation(u, AnnotationDeletionAttempt)
}

// ClearUsage returns the command that removes a Usage and nothing else. With the label of a
// composite, Crossplane waits until the using object is gone (crossplane
// internal/controller/protection/usage), which never happens for a Usage that was left behind. With
// replayDeletion, Crossplane repeats a refused deletion of the protected object when the Usage goes.
func ClearUsage(usage *unstructured.Unstructured) string {
	var commands []Command
	if used, ok := Used(usage); ok && Get[bool](usage.Object, "spec", "replayDeletion") {
		commands = append(commands, Kubectl("annotate", used, AnnotationDeletionAttempt+"-"))
	}
	commands = append(commands, Kubectl("label", RefTo(usage), LabelComposite+"-"))
	if usage.GetDeletionTimestamp() == nil {
		commands = append(commands, Kubectl("delete", RefTo(usage)))
	}

	return Then(commands...)
}
