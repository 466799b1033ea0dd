package backupitem

import (
	"context"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	ibav1 "github.com/vmware-tanzu/velero/pkg/plugin/velero/itemblockaction/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// ItemBlock is the ItemBlockAction that keeps a tree in one block, so that it is backed up at one
// time. Velero also adds the CRDs of a block's kinds, and not those of items that only a
// BackupItemAction returns (velero pkg/backup/backup.go, backupItemBlock).
type ItemBlock struct {
	uncalled

	resolver *Resolver
	log      logrus.FieldLogger
}

var _ ibav1.ItemBlockAction = &ItemBlock{}

// NewItemBlock returns the action. It serves one backup.
func NewItemBlock(resolver *Resolver, log logrus.FieldLogger) *ItemBlock {
	return &ItemBlock{resolver: resolver, log: log}
}

// AppliesTo selects the kinds of XRs and claims, since only these bring other items of Tree's.
// Velero calls it when the backup begins. If the XRDs can't be read, it selects all that Tree does.
func (b *ItemBlock) AppliesTo() (velero.ResourceSelector, error) {
	// Velero takes an empty list for all resources. So the list begins with XRDs, of which there is
	// one for each other entry.
	include := []string{xp.ResourceXRD.String()}
	err := b.resolver.reader.Each(context.Background(), xp.KindDefinition, "", metav1.ListOptions{}, func(xrd *unstructured.Unstructured) {
		for _, r := range xp.DefinitionResources(xrd) {
			include = append(include, r.String())
		}
	})
	if err != nil && !isAbsent(err) {
		warn(b.log.WithError(err), nil, reason.RelatedNotRead.Messagef(
			"The kinds of XRs and claims can't be read, so the plugin looks at each custom resource for what belongs into its block"))

		return customResources(), nil
	}

	return velero.ResourceSelector{IncludedResources: include}, nil
}

// GetRelatedItems returns the item's own items, without shared ones, which would put all trees into
// one block. It gives no warnings: the BackupItemAction reads the same and does.
func (b *ItemBlock) GetRelatedItems(item runtime.Unstructured, _ *velerov1.Backup) ([]velero.ResourceIdentifier, error) {
	found := b.resolver.of(context.Background(), &unstructured.Unstructured{Object: item.UnstructuredContent()})

	return identifiers(found.items), nil
}
