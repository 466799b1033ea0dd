package backupitem

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

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

// Tree is the BackupItemAction that brings a claim's, an XR's or an MR's own into the backup with it, and writes onto their
// stored copies what a restore must bring back before them: a restore action sees neither the backup nor other items.
type Tree struct {
	links *Links
	log   logrus.FieldLogger

	settings func(of metav1.Object) (setting.Settings, error)
}

var _ biav2.BackupItemAction = &Tree{}

// NewTree returns the action. Velero uses it for one backup.
func NewTree(links *Links, log logrus.FieldLogger) *Tree {
	t := &Tree{links: links, log: log}
	if links != nil {
		t.settings = setting.Of(links.reader)
	}

	return t
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
	t.links.begin(u)
	found, err := t.links.of(context.Background(), u)
	if err != nil {
		return nil, nil, "", nil, err
	}
	if xp.IsProviderConfig(u) {
		settings, err := t.settings(backup)
		if err != nil {
			return nil, nil, "", nil, fmt.Errorf("cannot back up %s: %w", xp.String(u), err)
		}
		if settings.Credentials {
			t.links.credentials(found, u)
		}
	}
	found.items = slices.Concat(found.shared, found.items)
	beyond := found.leaveOut(u, backup)
	found.warn(t.log)
	found.warnLeft(t.log)
	found.warnUnknown(t.log)
	// What a tenant wrote there would have Velero take what the backup's filters leave out. On anything else it is not this plugin's to take off.
	if xp.IsClaim(u) || xp.IsComposite(u) || xp.IsManaged(u) || xp.IsProviderConfig(u) {
		xp.WithoutNotes(u)
	}
	if beyond {
		xp.SetMustInclude(u)
	}
	xp.SetTree(u, found.before)
	xp.SetDangling(u, found.dangling)
	xp.SetWell(u, found.composed)
	if err := t.identify(context.Background(), u, backup); err != nil {
		return nil, nil, "", nil, err
	}

	return u, identifiers(t.links.due(found.items, found.shared)), "", nil, nil
}

// Progress has nothing to tell: the action starts no operation.
func (t *Tree) Progress(string, *velerov1.Backup) (velero.OperationProgress, error) {
	return velero.OperationProgress{}, biav2.AsyncOperationsNotSupportedError()
}

// Cancel has nothing to cancel.
func (t *Tree) Cancel(string, *velerov1.Backup) error { return nil }

// found is what belongs to an item.
type found struct {
	// shared are what it runs on, as others do too, and items its own, without those that they bring along themselves. Both are to be backed up
	// with it.
	shared, items []xp.Item
	// before is what a restore must bring back before it, in order.
	before []xp.Item
	// published are those of the items that are connection secrets or credentials.
	published map[xp.Item]bool
	// dangling are the resourceRefs of an XR that lead nowhere, or to what somebody else controls.
	dangling []xp.Ref
	// composed are what an XR composes.
	composed []*unstructured.Unstructured
	// warnings say what was not followed and why.
	warnings []warning
	// left are the Usages of an XR that a restore would not bring back.
	left []warning
	// unknown is what could not be found out, and is not worth to lose the item for.
	unknown []gap
}

// A gap is what is not known of an object.
type gap struct {
	of        xp.Ref
	what, why string
}

type warning struct {
	of, to xp.Ref
	why    string
}

func (f *found) skip(of *unstructured.Unstructured, to xp.Ref, why string) {
	f.warnings = append(f.warnings, warning{of: xp.RefTo(of), to: to, why: why})
}

// leaveOut takes off what the backup's filters leave out, which Velero would drop without a word, and warns of it. A connection secret belongs to what
// published it wherever that was told to write it, and a password may be nowhere else: it is taken from any namespace that is not
// excluded, unless the backup is of some resources only. It tells whether there is one, for which Velero must be told to look beyond its filters.
func (f *found) leaveOut(of *unstructured.Unstructured, backup *velerov1.Backup) bool {
	beyond := false
	leftOut := func(i xp.Item) bool {
		return i.Namespace != "" && !included(backup, i.Namespace) && (!f.published[i] || !reaches(backup, i.Namespace))
	}
	f.items = slices.DeleteFunc(f.items, func(i xp.Item) bool {
		to := xp.Ref{Kind: i.GroupResource.String(), Namespace: i.Namespace, Name: i.Name}
		switch {
		case leftOut(i):
			f.skip(of, to, "its namespace is not in the backup; add "+i.Namespace+" to --include-namespaces if it can't be made anew")

			return true
		case i.Namespace == "" && !ptr.Deref(backup.Spec.IncludeClusterResources, true):
			f.skip(of, to, "the backup is made with --include-cluster-resources=false, so the tree can't be restored from it")

			return true
		default:
			beyond = beyond || i.Namespace != "" && !included(backup, i.Namespace)

			return false
		}
	})
	f.before = slices.DeleteFunc(f.before, leftOut)

	return beyond
}

// reaches tells whether a backup takes connection secrets from a namespace that is not among those it includes.
func reaches(backup *velerov1.Backup, namespace string) bool {
	s := backup.Spec
	filters := slices.Concat(s.IncludedResources, s.ExcludedResources, s.IncludedClusterScopedResources, s.ExcludedClusterScopedResources,
		s.IncludedNamespaceScopedResources, s.ExcludedNamespaceScopedResources)
	// Velero itself excludes VolumeSnapshots and what belongs to them from every backup (velero pkg/controller/backup_controller.go).
	ofResources := slices.ContainsFunc(filters, func(f string) bool { return !strings.HasSuffix(f, ".snapshot.storage.k8s.io") })

	return !ofResources && s.ResourcePolicy == nil && ptr.Deref(s.IncludeClusterResources, true) && !matches(s.ExcludedNamespaces, namespace)
}

// included tells whether a backup takes a namespace.
func included(backup *velerov1.Backup, namespace string) bool {
	return (len(backup.Spec.IncludedNamespaces) == 0 || matches(backup.Spec.IncludedNamespaces, namespace)) && !matches(backup.Spec.ExcludedNamespaces, namespace)
}

// matches tells whether one of the patterns matches. Velero allows globs in its lists.
func matches(patterns []string, namespace string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, namespace)

		return ok && err == nil
	})
}

func (f *found) warn(log logrus.FieldLogger) {
	for _, w := range f.warnings {
		log.WithFields(logrus.Fields{"object": w.of.String(), "reference": w.to.String(), "reason": w.why}).
			Warn("A reference is not followed into the backup: " + w.of.String() + " names " + w.to.String() + ", but " + w.why)
	}
}

func (f *found) warnLeft(log logrus.FieldLogger) {
	for _, w := range f.left {
		log.WithFields(logrus.Fields{"object": w.of.String(), "reference": w.to.String(), "reason": w.why}).
			Warn("A Usage is left behind: " + w.to.String() + ": " + w.why)
	}
}

func (f *found) warnUnknown(log logrus.FieldLogger) {
	for _, g := range f.unknown {
		log.WithFields(logrus.Fields{"object": g.of.String(), "reference": g.what, "reason": g.why}).
			Warn("Not all of what belongs to " + g.of.String() + " is known: " + g.what + " could not be looked at: " + g.why)
	}
}

func identifiers(items []xp.Item) []velero.ResourceIdentifier {
	var ids []velero.ResourceIdentifier
	for _, i := range items {
		ids = append(ids, velero.ResourceIdentifier{GroupResource: i.GroupResource, Namespace: i.Namespace, Name: i.Name})
	}

	return ids
}
