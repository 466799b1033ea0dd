package diagnosis

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkUsages finds Usages that XRs have left behind. They block a deletion although nothing uses
// the object any more.
func (d *diagnosis) checkUsages() {
	var composed []*unstructured.Unstructured
	for _, u := range fullObjects(d.with(isUsage)) {
		if u.GetLabels()[xp.LabelComposite] != "" {
			composed = append(composed, u)
		}
	}
	if len(composed) == 0 {
		return
	}
	for _, left := range adoption.Leftovers(composed, parts(d.with(isComposite), shapeList)) {
		if d.of == Cluster && d.isSoonGone(left.Usage) {
			continue
		}
		next := left.Next()
		if d.of == Backup {
			next = "a restore leaves it out; in the source cluster, " + next
		}
		d.found = append(d.found, report.Problem{
			Code: reason.UsageLeftBehind, Severity: report.Error, Object: xp.RefTo(left.Usage), Others: []xp.Ref{xp.RefTo(left.XR)},
			Reason: left.Why + "; it protects " + xp.Protected(left.Usage), Next: next,
		})
	}
}

// isSoonGone reports whether a Usage is being deleted and may soon be gone. Crossplane keeps it
// until the using object is gone.
func (d *diagnosis) isSoonGone(usage *unstructured.Unstructured) bool {
	deleted := usage.GetDeletionTimestamp()
	if deleted == nil {
		return false
	}
	user, ok := xp.User(usage)
	u := d.Get(user)

	return d.Now.Sub(deleted.Time) < stuckAfter || ok && u != nil && u.GetDeletionTimestamp() != nil
}
