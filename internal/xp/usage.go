package xp

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Used returns what a Usage protects; ok is false if its selector has found nothing yet.
func Used(usage *unstructured.Unstructured) (Ref, bool) { return usageRef(usage, "of") }

// User returns what a Usage protects something for; ok is false if that is nothing, or its selector
// has found nothing yet.
func User(usage *unstructured.Unstructured) (Ref, bool) { return usageRef(usage, "by") }

func usageRef(usage *unstructured.Unstructured, field string) (Ref, bool) {
	r, ok := refAt(usage, "spec", field)
	if !ok {
		return Ref{}, false
	}
	m, _, _ := unstructured.NestedStringMap(usage.Object, "spec", field, "resourceRef")
	r.Name, r.Namespace = m["name"], usage.GetNamespace()
	if m["namespace"] != "" {
		r.Namespace = m["namespace"]
	}

	return r, r.Name != ""
}

// Protected names what a Usage protects, and what for, in a message.
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

// UsageKinds are the kinds of which IsUsage knows objects. No version of Crossplane serves all of
// them.
func UsageKinds() []schema.GroupKind {
	return []schema.GroupKind{
		{Group: GroupProtection, Kind: "Usage"},
		{Group: GroupProtection, Kind: "ClusterUsage"},
		{Group: GroupAPIExtensions, Kind: "Usage"},
	}
}

// Replays reports whether Crossplane deletes what the Usage protects when the Usage goes, if
// somebody has tried to in the meantime.
func Replays(usage *unstructured.Unstructured) bool {
	replays, _, _ := unstructured.NestedBool(usage.Object, "spec", "replayDeletion")

	return replays
}

// HasDeletionAttempt reports whether somebody tried to delete u while it was in use.
func HasDeletionAttempt(u *unstructured.Unstructured) bool {
	return HasAnnotation(u, AnnotationDeletionAttempt)
}

// ClearUsage returns the command that takes a Usage away without anything else. As long as it has
// the label of a composite Crossplane waits for what uses the used object to be gone (crossplane
// internal/controller/protection/usage), which for a Usage that was left behind is never; and one
// with replayDeletion would take what it protects with it.
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
