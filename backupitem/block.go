package backupitem

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	ibav1 "github.com/vmware-tanzu/velero/pkg/plugin/velero/itemblockaction/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Block is the ItemBlockAction that keeps a tree in one block, so that it is backed up at one time. It also makes Velero add the CRDs of
// the tree's kinds, which it doesn't for what only a BackupItemAction names (velero pkg/backup/backup.go, backupItemBlock).
type Block struct {
	links *Links
}

var _ ibav1.ItemBlockAction = &Block{}

// NewBlock returns the action.
func NewBlock(links *Links) *Block {
	return &Block{links: links}
}

// Name is not called by Velero.
func (b *Block) Name() string { return "tree" }

// AppliesTo selects what XRs, claims and MRs can be.
func (b *Block) AppliesTo() (velero.ResourceSelector, error) {
	include, exclude := xp.Custom()

	return velero.ResourceSelector{IncludedResources: include, ExcludedResources: exclude}, nil
}

// GetRelatedItems returns what belongs into one block with the item. What is shared is left out: it would make
// one block of all. The warnings are the BackupItemAction's to give.
func (b *Block) GetRelatedItems(item runtime.Unstructured, _ *velerov1.Backup) ([]velero.ResourceIdentifier, error) {
	found, err := b.links.of(context.Background(), &unstructured.Unstructured{Object: item.UnstructuredContent()})
	if err != nil {
		return nil, err
	}

	return identifiers(found.items), nil
}
