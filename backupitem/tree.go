package backupitem

import (
	"context"
	"path"
	"slices"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	biav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/backupitemaction/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Tree is the BackupItemAction that brings a claim's, an XR's or an MR's own into the backup with it, and writes onto the stored copy of a
// claim or XR what a restore must bring back before it: a restore action sees neither the backup nor other items.
type Tree struct {
	links *Links
	log   logrus.FieldLogger
}

var _ biav2.BackupItemAction = &Tree{}

// NewTree returns the action.
func NewTree(links *Links, log logrus.FieldLogger) *Tree {
	return &Tree{links: links, log: log}
}

// Name is not called by Velero.
func (t *Tree) Name() string { return "tree" }

// AppliesTo selects what XRs, claims and MRs can be.
func (t *Tree) AppliesTo() (velero.ResourceSelector, error) {
	include, exclude := xp.Custom()

	return velero.ResourceSelector{IncludedResources: include, ExcludedResources: exclude}, nil
}

// Execute returns the item as it is to be stored, and what to back up with it.
func (t *Tree) Execute(item runtime.Unstructured, backup *velerov1.Backup) (
	runtime.Unstructured, []velero.ResourceIdentifier, string, []velero.ResourceIdentifier, error,
) {
	u := &unstructured.Unstructured{Object: item.UnstructuredContent()}
	found, err := t.links.of(context.Background(), u)
	if err != nil {
		return nil, nil, "", nil, err
	}
	found.leaveOut(u, backup)
	found.warn(t.log)
	if xp.IsClaim(u) || xp.IsComposite(u) {
		xp.SetTree(u, found.before)
		xp.SetDangling(u, found.dangling)
	}

	return u, identifiers(found.items), "", nil, nil
}

// Progress has nothing to tell: the action starts no operation.
func (t *Tree) Progress(string, *velerov1.Backup) (velero.OperationProgress, error) {
	return velero.OperationProgress{}, biav2.AsyncOperationsNotSupportedError()
}

// Cancel has nothing to cancel.
func (t *Tree) Cancel(string, *velerov1.Backup) error { return nil }

// found is what belongs to an item.
type found struct {
	// items are to be backed up with it, without those that they bring along themselves.
	items []xp.Item
	// before is what a restore must bring back before it, in order.
	before []xp.Item
	// dangling are the resourceRefs of an XR that lead nowhere.
	dangling []xp.Ref
	// warnings say what was not followed and why.
	warnings []warning
}

type warning struct {
	of, to xp.Ref
	why    string
}

func (f *found) skip(of *unstructured.Unstructured, to xp.Ref, why string) {
	f.warnings = append(f.warnings, warning{of: xp.RefTo(of), to: to, why: why})
}

// leaveOut warns of the items that the backup's filters leave out, which Velero drops without a word, and takes them off what to restore first.
func (f *found) leaveOut(of *unstructured.Unstructured, backup *velerov1.Backup) {
	for _, i := range f.items {
		to := xp.Ref{Kind: i.GroupResource.String(), Namespace: i.Namespace, Name: i.Name}
		switch {
		case i.Namespace != "" && !included(backup, i.Namespace):
			f.skip(of, to, "its namespace is not in the backup; add "+i.Namespace+" to --include-namespaces if it can't be made anew")
		case i.Namespace == "" && backup.Spec.IncludeClusterResources != nil && !*backup.Spec.IncludeClusterResources:
			f.skip(of, to, "the backup is made with --include-cluster-resources=false, so the tree can't be restored from it")
		}
	}
	f.before = slices.DeleteFunc(f.before, func(i xp.Item) bool { return i.Namespace != "" && !included(backup, i.Namespace) })
}

// included tells whether a backup takes a namespace. Velero allows globs in its lists.
func included(backup *velerov1.Backup, namespace string) bool {
	matches := func(pattern string) bool {
		ok, err := path.Match(pattern, namespace)

		return ok && err == nil
	}

	return (len(backup.Spec.IncludedNamespaces) == 0 || slices.ContainsFunc(backup.Spec.IncludedNamespaces, matches)) &&
		!slices.ContainsFunc(backup.Spec.ExcludedNamespaces, matches)
}

func (f *found) warn(log logrus.FieldLogger) {
	for _, w := range f.warnings {
		log.WithFields(logrus.Fields{"object": w.of.String(), "reference": w.to.String(), "reason": w.why}).
			Warn("A reference is not followed into the backup: " + w.of.String() + " names " + w.to.String() + ", but " + w.why)
	}
}

func identifiers(items []xp.Item) []velero.ResourceIdentifier {
	var ids []velero.ResourceIdentifier
	for _, i := range items {
		ids = append(ids, velero.ResourceIdentifier{GroupResource: i.GroupResource, Namespace: i.Namespace, Name: i.Name})
	}

	return ids
}
