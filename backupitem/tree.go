package backupitem

import (
	"context"
	"slices"
	"sync"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	biav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/backupitemaction/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Tree is the BackupItemAction that adds what belongs to a claim, an XR or an MR to the backup. It
// writes onto the stored copy what a restore must create first, since a restore action sees neither
// the backup nor other items.
type Tree struct {
	resolver *Resolver
	log      logrus.FieldLogger

	settings func(of metav1.Object) (setting.Settings, error)
	// settingsWarning gives one warning for all MRs that the settings can't be read.
	settingsWarning sync.Once
	risks           risks
	// inStores are the kinds and namespaces of objects that publish in secret stores and were named.
	inStores sync.Map
	// makeKey has the key of marks made once.
	makeKey func(ctx context.Context, velero string)
}

var _ biav2.BackupItemAction = &Tree{}

// NewTree returns the action. It serves one backup.
func NewTree(resolver *Resolver, log logrus.FieldLogger) *Tree {
	t := &Tree{resolver: resolver, log: log, makeKey: func(context.Context, string) {}}
	if resolver != nil {
		t.settings = once(setting.Of(resolver.reader))
	}

	return t
}

// once returns settings that are not read again after an error: each item would wait for a timeout.
func once(settings func(of metav1.Object) (setting.Settings, error)) func(of metav1.Object) (setting.Settings, error) {
	var mu sync.Mutex
	var failed error

	return func(of metav1.Object) (s setting.Settings, err error) {
		mu.Lock()
		defer mu.Unlock()
		if failed == nil {
			s, failed = settings(of)
		}

		return s, failed
	}
}

// Name is not called by Velero.
func (t *Tree) Name() string { return "tree" }

// AppliesTo selects all resources that can be XRs, claims and MRs.
func (t *Tree) AppliesTo() (velero.ResourceSelector, error) {
	include, exclude := xp.CustomResources()

	return velero.ResourceSelector{IncludedResources: include, ExcludedResources: exclude}, nil
}

// Execute returns the item as it is to be stored, and what to back up with it. It returns no error:
// Velero would then leave out the item, and each item that requests it.
func (t *Tree) Execute(item runtime.Unstructured, backup *velerov1.Backup) (
	runtime.Unstructured, []velero.ResourceIdentifier, string, []velero.ResourceIdentifier, error,
) {
	ctx, u := context.Background(), &unstructured.Unstructured{Object: item.UnstructuredContent()}
	t.makeKey(ctx, backup.Namespace)
	t.resolver.begin(u)
	found := t.resolver.of(ctx, u)
	if xp.IsProviderConfig(u) {
		t.credentials(ctx, found, backup)
	}
	if xp.IsManaged(u) {
		t.inputs(ctx, found, backup)
	}
	found.items = slices.Concat(found.shared, found.items)
	found.reads = t.resolver.unwarned(found.reads, backup)
	beyond := t.resolver.applyFilters(ctx, found, backup)
	// A tenant's own metadata there would make Velero ignore the backup's filters. Of other objects
	// it is not this plugin's to remove.
	if xp.IsClaim(u) || xp.IsComposite(u) || xp.IsManaged(u) || xp.IsProviderConfig(u) {
		xp.StripBackupMetadata(u)
	}
	if beyond {
		xp.Annotate(u, xp.AnnotationMustInclude, "true")
	}
	found.note(u)
	xp.SetFlag(u, xp.FieldPublished, found.takesSecret(backup))
	found.noteInputs(u)
	found.warn(t.log)
	t.identify(ctx, u, backup)
	t.noteUIDs(ctx, u)
	t.warnOfUIDs(found.composed)
	t.warnOfMissingXR(ctx, u, backup)
	t.warnOfStore(ctx, u)

	return u, identifiers(t.resolver.due(found.items, found.shared)), "", nil, nil
}

// Progress is not called: the action starts no operation.
func (t *Tree) Progress(string, *velerov1.Backup) (velero.OperationProgress, error) {
	return velero.OperationProgress{}, biav2.AsyncOperationsNotSupportedError()
}

// Cancel has nothing to cancel.
func (t *Tree) Cancel(string, *velerov1.Backup) error { return nil }

func identifiers(items []xp.Item) []velero.ResourceIdentifier {
	var ids []velero.ResourceIdentifier
	for _, i := range items {
		ids = append(ids, velero.ResourceIdentifier{GroupResource: i.GroupResource, Namespace: i.Namespace, Name: i.Name})
	}

	return ids
}
