package restoreitem

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// requires returns what the XR's CompositionRevision requires, nil if the restore has not reached
// it.
func (ri *RequestedItems) requires(xr *unstructured.Unstructured) []string {
	v, _ := ri.required.Load(xp.CompositeFrom(xr).Revision())
	required, _ := v.([]string)

	return required
}

// unrestoredInputs records the EnvironmentConfigs that a CompositionRevision names. It returns a
// warning of other inputs of its functions that the restore may not bring, the zero Message if
// there are none. A full restore brings all that the backup has.
func (o *Order) unrestoredInputs(item *unstructured.Unstructured, restore *velerov1.Restore) (left reason.Message) {
	if !xp.IsRevision(item) {
		return left
	}
	reads := xp.PipelineInputsOf(item)
	o.Requested.addEnvironments(reads.Environments)
	if len(reads.Others) == 0 || !ofNamespaces(restore) && !isSelective(restore) {
		return left
	}
	left = reason.PipelineReads.Messagef("Functions of %s read what this restore may not bring: %s. If they find less, Crossplane can delete composed "+
		"resources. The setting %s=by-hand gives you time to check",
		xp.String(item), reads, setting.NameRelease)
	o.warn(o.log.WithField("object", xp.String(item)), left)

	return left
}
