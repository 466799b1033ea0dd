// Package backupitem has Velero's backup actions, which decide what belongs into a backup with an
// item; only main imports it. Begin with Tree and Resolver. A link between two objects counts only
// if both confirm it, so that a tenant can't add another's objects to a backup by naming them.
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
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Tree is the BackupItemAction that adds what belongs to a claim, an XR or an MR to the backup. It
// writes onto the stored copy what a restore must create first, since a restore action sees neither
// the backup nor other items.
type Tree struct {
	uncalled

	resolver *Resolver
	log      logrus.FieldLogger

	settingsOf      func(of metav1.Object) (setting.Settings, error)
	readingSettings sync.Once
	known           setting.Settings
	settingsErr     error
	// settingsWarning gives one warning for all MRs that the settings can't be read.
	settingsWarning sync.Once
	makingKey       sync.Once

	counting sync.Mutex
	atRisk   map[risk]int
}

var _ biav2.BackupItemAction = &Tree{}

// NewTree returns the action. It serves one backup.
func NewTree(resolver *Resolver, log logrus.FieldLogger) *Tree {
	return &Tree{resolver: resolver, settingsOf: setting.Of(resolver.reader), log: log, atRisk: map[risk]int{}}
}

// settings reads the settings once, also if that fails: each item would wait for a timeout.
func (t *Tree) settings(backup *velerov1.Backup) (setting.Settings, error) {
	t.readingSettings.Do(func() {
		if t.known, t.settingsErr = t.settingsOf(backup); t.settingsErr != nil {
			t.known = setting.Settings{}
		}
	})

	return t.known, t.settingsErr
}

// AppliesTo selects all resources that can be XRs, claims and MRs.
func (t *Tree) AppliesTo() (velero.ResourceSelector, error) { return customResources(), nil }

func customResources() velero.ResourceSelector {
	include, exclude := xp.CustomResources()

	return velero.ResourceSelector{IncludedResources: include, ExcludedResources: exclude}
}

// Execute returns the item as it is to be stored, and what to back up with it. It returns no error:
// Velero would then leave out the item, and each item that requests it.
func (t *Tree) Execute(item runtime.Unstructured, backup *velerov1.Backup) (
	runtime.Unstructured, []velero.ResourceIdentifier, string, []velero.ResourceIdentifier, error,
) {
	ctx, u := context.Background(), &unstructured.Unstructured{Object: item.UnstructuredContent()}
	t.makingKey.Do(func() { t.makeKey(ctx, backup.Namespace) })
	t.resolver.begin(u)
	found := t.resolver.of(ctx, u)
	if xp.IsProviderConfig(u) {
		t.credentials(ctx, found, backup)
	}
	if xp.IsManaged(u) {
		t.inputs(ctx, found, backup)
	}
	found.items = slices.Concat(found.shared, found.items)
	if !includesAll(backup) || !ptr.Deref(backup.Spec.IncludeClusterResources, false) {
		found.notes = append(found.notes, found.reads...)
	}
	beyond := t.resolver.applyFilters(ctx, found, backup)
	// A tenant's own metadata there would make Velero ignore the backup's filters. Of other objects
	// it is not this plugin's to remove.
	if xp.IsClaim(u) || xp.IsComposite(u) || xp.IsManaged(u) || xp.IsProviderConfig(u) {
		xp.StripBackupMetadata(u)
	}
	if beyond {
		xp.Annotate(u, xp.AnnotationMustInclude, "true")
	}
	found.writeNotes(u)
	found.warn(t.log, t.resolver.isFirst)
	t.identify(ctx, u, backup)
	t.noteUIDs(ctx, u)
	t.warnOfUIDs(found.composed)
	t.warnOfMissingXR(ctx, u, backup)
	t.warnOfStore(u)

	return u, identifiers(t.resolver.due(found.items, found.shared)), "", nil, nil
}

// makeKey has the key made that signs the marks of holds, so that the command hold can sign with it
// and needs no right to create a Secret. A backup does not depend on the key.
func (t *Tree) makeKey(ctx context.Context, namespace string) {
	if err := t.resolver.reader.MakeMarkKey(ctx, namespace); err != nil {
		t.log.WithError(err).Info("The command hold needs the right to make the key that signs the marks of holds, or another backup that makes it")
	}
}

// uncalled has the methods of an action that Velero does not call, since it starts no operation.
type uncalled struct{}

func (uncalled) Name() string { return "" }

func (uncalled) Progress(string, *velerov1.Backup) (velero.OperationProgress, error) {
	return velero.OperationProgress{}, biav2.AsyncOperationsNotSupportedError()
}

func (uncalled) Cancel(string, *velerov1.Backup) error { return nil }

func identifiers(items []xp.Item) []velero.ResourceIdentifier {
	var ids []velero.ResourceIdentifier
	for _, i := range items {
		ids = append(ids, velero.ResourceIdentifier{GroupResource: i.GroupResource, Namespace: i.Namespace, Name: i.Name})
	}

	return ids
}
