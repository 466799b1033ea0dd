package backupitem

import (
	"context"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	ibav1 "github.com/vmware-tanzu/velero/pkg/plugin/velero/itemblockaction/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// ItemBlock is the ItemBlockAction that keeps a tree in one block, so that it is backed up at one
// time. It also makes Velero add the CRDs of the tree's kinds, which it doesn't for what only a
// BackupItemAction names (velero pkg/backup/backup.go, backupItemBlock).
type ItemBlock struct {
	resolver *Resolver
	log      logrus.FieldLogger
}

var _ ibav1.ItemBlockAction = &ItemBlock{}

// NewItemBlock returns the action. Velero uses it for one backup.
func NewItemBlock(resolver *Resolver, log logrus.FieldLogger) *ItemBlock {
	return &ItemBlock{resolver: resolver, log: log}
}

// Name is not called by Velero.
func (b *ItemBlock) Name() string { return "tree" }

// AppliesTo selects the XRs and claims of the cluster, since of all that Tree is asked about only
// they bring others of its kind. Velero asks when the backup begins. If the XRDs can't be read, it
// selects all that Tree does.
func (b *ItemBlock) AppliesTo() (velero.ResourceSelector, error) {
	// Velero takes none for all, and there is one of these for each of the others.
	include := []string{xp.ResourceXRD.String()}
	err := b.resolver.reader.Each(context.Background(), xp.KindDefinition, "", metav1.ListOptions{}, func(xrd *unstructured.Unstructured) {
		for _, r := range xp.DefinitionResources(xrd) {
			include = append(include, r.String())
		}
	})
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		b.log.WithError(err).Warn("Cannot find out which kinds XRs and claims have; asking of each custom resource what belongs into one block with it")
		include, exclude := xp.CustomResources()

		return velero.ResourceSelector{IncludedResources: include, ExcludedResources: exclude}, nil
	}

	return velero.ResourceSelector{IncludedResources: include}, nil
}

// GetRelatedItems returns what belongs into one block with the item. What is shared is left out: it
// would make one block of all. The warnings are the BackupItemAction's to give, also of what can't
// be read: it asks for the same.
func (b *ItemBlock) GetRelatedItems(item runtime.Unstructured, _ *velerov1.Backup) ([]velero.ResourceIdentifier, error) {
	found := b.resolver.of(context.Background(), &unstructured.Unstructured{Object: item.UnstructuredContent()})

	return identifiers(found.items), nil
}
