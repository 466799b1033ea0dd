package backupitem

import (
	"context"
	"slices"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// warnOfMissingXR warns of the XR of an MR or a nested XR, if the backup leaves it out: a restore
// then brings that back without an owner. Thousands can have the same XR, so it warns once of each
// XR, and by name of the first mostAtRisk of a kind.
func (t *Tree) warnOfMissingXR(ctx context.Context, u *unstructured.Unstructured, backup *velerov1.Backup) {
	c, controlled := xp.Controller(u)
	if !controlled || !xp.IsComposed(u) || !xp.IsManaged(u) && !xp.IsComposite(u) {
		return
	}
	r := xp.Ref{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: u.GetNamespace(), Name: c.Name}
	item, why := t.resolver.missingXR(ctx, r, c, backup)
	if why.IsZero() || !t.resolver.isFirst(item) {
		return
	}
	const held = "A restore holds what it composes until an XR controls that, or a user releases it"
	t.warnFew(risk{GroupKind: r.GroupVersionKind().GroupKind(), what: "are not in the backup, which has what they compose"},
		logrus.Fields{"object": xp.String(u), "reference": r.Kind + " " + r.Name, "cause": why.Text},
		reason.XRNotRestored.Messagef("%s %s is not in the backup, which has what it composes, such as %s: %s. %s",
			r.Kind, r.Name, xp.String(u), why.Text, held), held)
}

// missingXR returns why a backup leaves out the XR that an owner reference means, none if it does
// not or that is not known. One list reads the XRs of a kind in a namespace.
func (res *Resolver) missingXR(ctx context.Context, r xp.Ref, owner metav1.OwnerReference, backup *velerov1.Backup) (i xp.Item, why reason.Message) {
	kind, ok, err := res.resolve(r.GroupVersionKind())
	if err != nil || !ok {
		return i, why // Without its XRD Crossplane does not run.
	}
	r = kind.at(r)
	gvr, _, err := res.resource(r.GroupVersionKind())
	if err != nil {
		return i, why
	}
	i = xp.Item{GroupResource: gvr.GroupResource(), Namespace: r.Namespace, Name: r.Name}
	if res.hasBegun(i) {
		return i, why
	}
	switch xr, err := res.listed(ctx, &found{}, r, metav1.ListOptions{}); {
	case err != nil:
		return i, why
	case xr == nil || xr.GetUID() != owner.UID:
		return i, reason.Dangling.Messagef("it does not exist")
	case !xp.IsComposite(xr):
		return i, why // Another controller's object.
	case !leavesOut(xr).IsZero():
		return i, leavesOut(xr)
	default:
		return i, res.excluded(ctx, i, xr, backup)
	}
}

// withoutGoing returns u, which an XR lists, without its controller, if that is an XR of the same
// tree that is being deleted. What has moved up from a nested XR then comes back for the one that
// lists it. u may be nil.
func (res *Resolver) withoutGoing(ctx context.Context, f *found, xr xp.Composite, u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil || xp.Controls(xr.Unstructured, u) || xp.IsComposite(u) && xp.Label(u, xp.LabelComposite) == u.GetName() {
		return u // The root of a tree has no XR to move up from.
	}
	c, controlled := xp.Controller(u)
	r := xp.Ref{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: u.GetNamespace(), Name: c.Name}
	alone := u.DeepCopy()
	alone.SetOwnerReferences(nil)
	if !controlled || !xp.Composed(xr, alone) || !f.follows(r.GroupVersionKind().GroupKind()) {
		return u
	}
	kind, ok, err := res.resolve(r.GroupVersionKind())
	if err != nil || !ok {
		return u
	}
	owner, err := res.listed(ctx, f, kind.at(r), metav1.ListOptions{})
	if err != nil || owner == nil || owner.GetUID() != c.UID || owner.GetDeletionTimestamp() == nil || !xp.IsComposite(owner) {
		return u
	}

	return alone
}

func (res *Resolver) hasBegun(i xp.Item) bool {
	res.mu.Lock()
	defer res.mu.Unlock()

	return res.begun[i]
}

// excluded returns why the filters of a backup leave out an XR, none if they do not. Its claim or
// its own XR can request it despite some of them.
func (res *Resolver) excluded(ctx context.Context, i xp.Item, xr *unstructured.Unstructured, backup *velerov1.Backup) reason.Message {
	if why, _ := res.exclusion(ctx, &found{}, i, backup); !why.IsZero() {
		return why
	}
	_, claimed := xp.CompositeFrom(xr).ClaimRef()
	_, composed := xp.Controller(xr)
	switch s := backup.Spec; {
	case claimed, composed:
		return reason.Message{}
	case i.Namespace == "" && s.IncludeClusterResources == nil && len(s.IncludedClusterScopedResources) == 0 && !includesAll(backup):
		return reason.ExcludedByFilter.Messagef("it is cluster-scoped, and the backup is of namespaces. To include it, add --include-cluster-resources=true")
	case selective(backup) && !selects(backup, xr):
		return reason.ExcludedByFilter.Messagef("the backup does not select its labels. To include it, label it, then back up again")
	default:
		return reason.Message{}
	}
}

// selects reports whether a backup's label selectors match an object. Velero refuses invalid ones.
func selects(backup *velerov1.Backup, u *unstructured.Unstructured) bool {
	selectors := backup.Spec.OrLabelSelectors
	if s := backup.Spec.LabelSelector; s != nil {
		selectors = append(slices.Clip(selectors), s)
	}
	for _, s := range selectors {
		if l, err := metav1.LabelSelectorAsSelector(s); err == nil && l.Matches(labels.Set(u.GetLabels())) {
			return true
		}
	}

	return false
}
