package adoption

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// annotationAsked is how a claim is asked for: Crossplane copies a claim's annotations to its XR, where xp.AnnotationReconcileRequested would be written
// over the person's own, and of a claim it does not read that. It does not copy this one, as it does not AnnotationHold.
const annotationAsked = "velero.crossplane.x-k8s.io/reconcile-requested-at"

// asker is what a request for a reconcile says after its time and before the person's own value. Requests are taken back at once; this is how one that
// was left by a process that was killed is told.
const asker = " velero-plugin-for-crossplane:"

// Ask is the patch that asks Crossplane to reconcile an object. A person's own request is kept in it.
func Ask(u *unstructured.Unstructured, now time.Time) map[string]any {
	if xp.IsClaim(u) && !xp.IsComposite(u) {
		return patch(u, map[string]any{annotationAsked: now.UTC().Format(time.RFC3339)})
	}
	own, _ := asked(u.GetAnnotations())

	return patch(u, map[string]any{xp.AnnotationReconcileRequested: now.UTC().Format(time.RFC3339) + asker + own})
}

// TakeBack is the patch that gives an object the person's own request for a reconcile back; ok is false if it has that.
func TakeBack(u *unstructured.Unstructured) (p map[string]any, ok bool) {
	annotations := unasked(u)

	return patch(u, annotations), len(annotations) > 0
}

// takeBack plans to take back a request that was left.
func (t *tree) takeBack(u *unstructured.Unstructured) {
	if p, ok := TakeBack(u); ok && len(t.plan.Waiting) == 0 && t.plan.Patch == nil {
		t.do(u, p, "take back the request for a reconcile")
	}
}

// unasked are the annotations to patch so that no request of this plugin's is left on an object.
func unasked(u *unstructured.Unstructured) map[string]any {
	annotations := map[string]any{}
	if _, ok := u.GetAnnotations()[annotationAsked]; ok {
		annotations[annotationAsked] = nil
	}
	switch own, ours := asked(u.GetAnnotations()); {
	case ours && own == "":
		annotations[xp.AnnotationReconcileRequested] = nil
	case ours:
		annotations[xp.AnnotationReconcileRequested] = own
	}

	return annotations
}

// answer takes a request of this plugin's off what comes from a backup.
func answer(annotations map[string]string) {
	delete(annotations, annotationAsked)
	own, ours := asked(annotations)
	if !ours {
		return
	}
	delete(annotations, xp.AnnotationReconcileRequested)
	if own != "" {
		annotations[xp.AnnotationReconcileRequested] = own
	}
}

// asked returns the person's own request for a reconcile, and whether there is one of this plugin's in its place.
func asked(annotations map[string]string) (own string, ours bool) {
	value := annotations[xp.AnnotationReconcileRequested]
	if _, after, ours := strings.Cut(value, asker); ours {
		return after, true
	}

	return value, false
}
