package adoption

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// annotationRequested is how a claim is asked for: Crossplane copies a claim's annotations to its
// XR, where xp.AnnotationReconcileRequested would be written over the person's own, and of a claim
// it does not read that. It does not copy this one, as it does not AnnotationHold.
const annotationRequested = "velero.crossplane.x-k8s.io/reconcile-requested-at"

// requester is what a request for a reconcile says after its time and before the person's own
// value. Requests are taken back at once; this is how one that was left by a process that was
// killed is told.
const requester = " velero-plugin-for-crossplane:"

// RequestReconcile is the patch that asks Crossplane to reconcile an object. A person's own request
// is kept in it.
func RequestReconcile(u *unstructured.Unstructured, now time.Time) map[string]any {
	if xp.IsClaim(u) && !xp.IsComposite(u) {
		return patch(u, map[string]any{annotationRequested: now.UTC().Format(time.RFC3339)})
	}
	own, _ := ownRequest(u.GetAnnotations())

	return patch(u, map[string]any{xp.AnnotationReconcileRequested: now.UTC().Format(time.RFC3339) + requester + own})
}

// ClearReconcileRequest is the patch that gives an object the person's own request for a reconcile
// back; ok is false if it has that.
func ClearReconcileRequest(u *unstructured.Unstructured) (p map[string]any, ok bool) {
	annotations := withoutRequest(u)

	return patch(u, annotations), len(annotations) > 0
}

// clearRequest plans to take back a request that was left.
func (t *tree) clearRequest(u *unstructured.Unstructured) {
	if p, ok := ClearReconcileRequest(u); ok && len(t.plan.Waiting) == 0 && t.plan.Patch == nil {
		t.change(u, p, "take back the request for a reconcile")
	}
}

// withoutRequest are the annotations to patch so that no request of this plugin's is left on an
// object.
func withoutRequest(u *unstructured.Unstructured) map[string]any {
	annotations := map[string]any{}
	if _, ok := u.GetAnnotations()[annotationRequested]; ok {
		annotations[annotationRequested] = nil
	}
	switch own, ours := ownRequest(u.GetAnnotations()); {
	case ours && own == "":
		annotations[xp.AnnotationReconcileRequested] = nil
	case ours:
		annotations[xp.AnnotationReconcileRequested] = own
	}

	return annotations
}

// dropRequest takes a request of this plugin's off what comes from a backup.
func dropRequest(annotations map[string]string) {
	delete(annotations, annotationRequested)
	own, ours := ownRequest(annotations)
	if !ours {
		return
	}
	delete(annotations, xp.AnnotationReconcileRequested)
	if own != "" {
		annotations[xp.AnnotationReconcileRequested] = own
	}
}

// ownRequest returns the person's own request for a reconcile, and whether there is one of this
// plugin's in its place.
func ownRequest(annotations map[string]string) (own string, ours bool) {
	value := annotations[xp.AnnotationReconcileRequested]
	if _, after, ours := strings.Cut(value, requester); ours {
		return after, true
	}

	return value, false
}
