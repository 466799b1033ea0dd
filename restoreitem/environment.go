package restoreitem

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// requires returns what the XR's CompositionRevision requires, nil if the restore has not reached
// it.
func (ri *RequestedItems) requires(xr *unstructured.Unstructured) []string {
	if ri == nil {
		return nil
	}
	v, _ := ri.required.Load(xp.CompositeFrom(xr).Revision())
	required, _ := v.([]string)

	return required
}

// unrestoredInputs records the EnvironmentConfigs that a CompositionRevision names. It returns a
// warning of other inputs of its functions that the restore may not bring, "" if there are none. A
// full restore brings all that the backup has.
func (o *Order) unrestoredInputs(item *unstructured.Unstructured, restore *velerov1.Restore) (left string) {
	if !xp.IsRevision(item) {
		return ""
	}
	reads := xp.PipelineInputsOf(item)
	o.requested.addEnvironments(reads.Environments)
	if len(reads.Others) == 0 || !ofNamespaces(restore) && !isSelective(restore) {
		return ""
	}
	left = "This restore may not bring what functions of " + xp.String(item) + " read: " + reads.String() + ". See that it is there before the restore lets XRs " +
		"go that run on it, which the setting release=by-hand gives time for: a function that finds less can leave out what was composed, and Crossplane deletes that"
	o.log.WithField("object", xp.String(item)).Warn(left)

	return left
}
