package hold

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// annotationRequested requests a reconcile of a claim. Crossplane copies a claim's annotations to
// its XR, where xp.AnnotationReconcileRequested would replace the user's own value, and does not
// read that annotation of a claim. It does not copy this one, like Annotation.
const annotationRequested = "velero.crossplane.x-k8s.io/reconcile-requested-at"

// requestMarker is between the time of a request and the user's own value. Requests are removed at
// once; this shows one that a killed process has left.
const requestMarker = " velero-plugin-for-crossplane:"

// RequestReconcile returns the patch that requests a reconcile of u. It keeps a user's own request.
func RequestReconcile(u *unstructured.Unstructured, now time.Time) map[string]any {
	if xp.IsClaim(u) && !xp.IsComposite(u) {
		return patch(u, map[string]any{annotationRequested: now.UTC().Format(time.RFC3339)})
	}
	own, _ := ownRequest(u.GetAnnotations())

	return patch(u, map[string]any{xp.AnnotationReconcileRequested: now.UTC().Format(time.RFC3339) + requestMarker + own})
}

// ClearReconcileRequest returns the patch that gives u the user's own request back; ok is false if
// u has no request of this plugin.
func ClearReconcileRequest(u *unstructured.Unstructured) (p map[string]any, ok bool) {
	annotations := withoutRequest(u.GetAnnotations())

	return patch(u, annotations), len(annotations) > 0
}

// withoutRequest returns the changes after which annotations have no request of this plugin: the
// user's own value, or nil, which removes one.
func withoutRequest(annotations map[string]string) map[string]any {
	changes := map[string]any{}
	if _, ok := annotations[annotationRequested]; ok {
		changes[annotationRequested] = nil
	}
	switch own, ours := ownRequest(annotations); {
	case ours && own == "":
		changes[xp.AnnotationReconcileRequested] = nil
	case ours:
		changes[xp.AnnotationReconcileRequested] = own
	}

	return changes
}

// dropRequest removes a request of this plugin from annotations of the backup.
func dropRequest(annotations map[string]string) {
	for name, own := range withoutRequest(annotations) {
		delete(annotations, name)
		if s, ok := own.(string); ok {
			annotations[name] = s
		}
	}
}

// ownRequest returns the user's own request, and whether a request of this plugin replaces it.
func ownRequest(annotations map[string]string) (own string, ours bool) {
	value := annotations[xp.AnnotationReconcileRequested]
	if _, after, ours := strings.Cut(value, requestMarker); ours {
		return after, true
	}

	return value, false
}
