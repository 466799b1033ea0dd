package forest

import (
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Defect is a deliberate fault, by which a test proves that a property can fail. The zero Defect
// changes nothing.
type Defect struct {
	// Additional changes the additional items of a backup action.
	Additional func(f *Forest, of xp.Item, ids []velero.ResourceIdentifier) []velero.ResourceIdentifier
	// First changes the additional items of a restore action.
	First func(ids []velero.ResourceIdentifier) []velero.ResourceIdentifier
	// Created changes an object before it is created.
	Created func(original, u *unstructured.Unstructured)
	// Again changes a live object when a restore comes to its item.
	Again func(live *unstructured.Unstructured)
	// BringBack makes a restore of some namespaces take all cluster-scoped items.
	BringBack bool
	// DropLine drops a line of the log.
	DropLine func(line string) bool
}
