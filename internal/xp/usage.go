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
	m, _, _ := unstructured.NestedStringMap(usage.Object, "spec", field, "resourceRef")
	selected, _, _ := unstructured.NestedString(usage.Object, "spec", field, "resourceSelector", "namespace")
	r.Name, r.Namespace = m["name"], cmp.Or(m["namespace"], selected, usage.GetNamespace())

	return r, r.Name != ""
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

// Replays reports whether Crossplane repeats a refused deletion of the protected object when the
// Usage goes.
func Replays(usage *unstructured.Unstructured) bool {
	replays, _, _ := unstructured.NestedBool(usage.Object, "spec", "replayDeletion")

	return replays
}

// HasDeletionAttempt reports whether a Usage has refused the deletion of u.
func HasDeletionAttempt(u *unstructured.Unstructured) bool {
	return HasAnnotation(u, AnnotationDeletionAttempt)
}

// ClearUsage returns the command that removes a Usage and nothing else. With the label of a
// composite, Crossplane waits until the using object is gone (crossplane
// internal/controller/protection/usage), which never happens for a Usage that was left behind. With
// replayDeletion, the Usage would take the protected object with it.
func ClearUsage(usage *unstructured.Unstructured) string {
	var commands []Command
	if used, ok := Used(usage); ok && Replays(usage) {
		commands = append(commands, Kubectl("annotate", used, AnnotationDeletionAttempt+"-"))
	}
	commands = append(commands, Kubectl("label", RefTo(usage), LabelComposite+"-"))
	if usage.GetDeletionTimestamp() == nil {
		commands = append(commands, Kubectl("delete", RefTo(usage)))
	}

	return Then(commands...)
}
