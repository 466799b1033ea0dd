package hold

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// MarkPatch returns the patch that writes the mark of the hold h on the live object u.
func (k Key) MarkPatch(u *unstructured.Unstructured, h *Hold) map[string]any {
	return patch(u, map[string]any{Annotation: k.mark(xp.RefTo(u), h)})
}

// PausePatch returns MarkPatch with the pause of the hold.
func (k Key) PausePatch(u *unstructured.Unstructured, h *Hold) map[string]any {
	p := k.MarkPatch(u, h)
	set(p, "true", "metadata", "annotations", xp.AnnotationPaused)

	return p
}

// PutPatch returns the patch that puts a hold on a live object.
func (k Key) PutPatch(u *unstructured.Unstructured, h *Hold) map[string]any {
	p := k.PausePatch(u, h)
	if inst := (xp.Instance{Unstructured: u}); h.Pinned {
		if policy, _ := inst.UpdatePolicy(); policy != xp.UpdateManual {
			set(p, xp.UpdateManual, inst.UpdatePolicyPath()...)
		}
	}

	return p
}

// Unpause returns the patch that lets Crossplane reconcile u, still pinned and marked.
func (k Key) Unpause(u *unstructured.Unstructured, h *Hold, now time.Time) map[string]any {
	p := patch(u, map[string]any{xp.AnnotationPaused: nil})
	after := *h
	after.Unpaused = now.UTC().Format(time.RFC3339) // The wait for Crossplane counts from here.
	after.Polled = cmp.Or(after.Polled, after.Unpaused)
	after.LastReported = cmp.Or(after.LastReported, ReportedStart) // A later change of the mark alone would make Crossplane reconcile it once more.
	after.keepPauseManagers(u)
	if policy, _ := (xp.Instance{Unstructured: u}).UpdatePolicy(); h.Pinned && policy != xp.UpdateManual {
		// A user has applied the manifest again, which removed the pin.
		after.repin(u, p)
	}
	set(p, k.mark(xp.RefTo(u), &after), "metadata", "annotations", Annotation)

	return p
}

// ObservePatch returns the patch that lets the provider of an MR observe it.
func (k Key) ObservePatch(u *unstructured.Unstructured, h *Hold) map[string]any {
	annotations := map[string]any{xp.AnnotationPaused: nil}
	after := *h
	after.keepPauseManagers(u)
	if len(after.Managers) > 0 {
		annotations[Annotation] = k.mark(xp.RefTo(u), &after)
	}

	return patch(u, annotations)
}

// versioned returns a merge patch without changes. The API server refuses it if u has changed since
// it was observed.
func versioned(u *unstructured.Unstructured) map[string]any {
	return map[string]any{"metadata": map[string]any{"resourceVersion": u.GetResourceVersion()}}
}

// patch returns a merge patch of annotations.
func patch(u *unstructured.Unstructured, annotations map[string]any) map[string]any {
	p := versioned(u)
	set(p, annotations, "metadata", "annotations")

	return p
}

// nullable returns nil, which removes a field in a merge patch, for nil; else the string.
func nullable(s *string) any {
	if s == nil {
		return nil
	}

	return *s
}

// set sets the field at path in a patch; nil removes the field from the object.
func set(patch map[string]any, value any, path ...string) {
	for _, name := range path[:len(path)-1] {
		next, ok := patch[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			patch[name] = next
		}
		patch = next
	}
	patch[path[len(path)-1]] = value
}
