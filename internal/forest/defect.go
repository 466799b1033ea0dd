package forest

import (
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Defect is a deliberate one, by which a test proves that a property can fail. The zero Defect is
// none.
type Defect struct {
	// Additional changes what the backup's action asks for with an item.
	Additional func(f *Forest, of xp.Item, ids []velero.ResourceIdentifier) []velero.ResourceIdentifier
	// First changes what a restore's action asks for.
	First func(ids []velero.ResourceIdentifier) []velero.ResourceIdentifier
	// Created changes what is about to be created.
	Created func(original, u *unstructured.Unstructured)
	// Again changes what exists already when a restore comes to it.
	Again func(live *unstructured.Unstructured)
	// BringBack has a restore take whatever is cluster-scoped, also if it is of some namespaces
	// only.
	BringBack bool
	// Swallow has a line of the log be lost.
	Swallow func(line string) bool
}
