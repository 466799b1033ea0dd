package diagnosis

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkUsages finds Usages that XRs have left behind, which forbid the deletion of what nobody uses.
func (d *diagnosis) checkUsages() {
	var composed []*unstructured.Unstructured
	for _, u := range sorted(d.usages) {
		if u.GetLabels()[xp.LabelComposite] != "" {
			composed = append(composed, u)
		}
	}
	for _, left := range adoption.Leftovers(composed, d.composites) {
		next := left.Next()
		if d.of == Backup {
			next = "a restore leaves it out; in the source cluster, " + next
		}
		d.add(report.UsageLeftBehind, report.Grave, xp.RefTo(left.Usage), left.Why+"; it protects "+xp.Protected(left.Usage), next)
	}
}
