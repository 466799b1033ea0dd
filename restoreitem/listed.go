package restoreitem

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// notFirst has why what an item names is not restored before it, and the next step.
var notFirst = map[reason.Code]string{ //nolint:gochecknoglobals // It is constant.
	reason.ClusterScopedLeftOut: "it is cluster-scoped. To restore it, add --include-cluster-resources=true",
	reason.PlatformLeftOut:      "it comes only with the XRs that run on it. To restore it, add --include-cluster-resources=true",
	reason.BackupTampered:       "a managed resource comes only after the ProviderConfig that it names itself. Find out who wrote to the backup",
}

// isXR and isClaim don't believe a Secret that has an XR's finalizer.
func isXR(item *unstructured.Unstructured) bool { return isInstance(item) && xp.IsComposite(item) }

func isClaim(item *unstructured.Unstructured) bool { return isInstance(item) && xp.IsClaim(item) }

func isInstance(item *unstructured.Unstructured) bool {
	group := item.GroupVersionKind().Group

	return xp.IsCustomGroup(group) && !xp.IsCrossplaneGroup(group)
}

// listed returns what the list on the item's stored copy names to come before it; ok is false if
// there is no list of this plugin's. A user with access to the bucket can write a list. So in a
// restore of namespaces it grants no more than the item itself could, and nothing that no action of
// this plugin checks.
func (o *Order) listed(i *item) (items []xp.Item, ok bool) {
	list, ok, err := xp.RestoreFirst(i.original)
	if err != nil {
		// This plugin writes only lists that can be read.
		i.logWarning(reason.BackupTampered.Messagef("The list on %s of what to restore first can't be read, so the restore uses the object's own references: %v",
			xp.String(i.original), err))
	}
	if !ok {
		return nil, false
	}
	if !isXR(i.original) && !isClaim(i.original) && (!isInstance(i.original) || !i.isManaged()) {
		i.logWarning(reason.BackupTampered.Messagef("%s has a list of what to restore first, which only claims, XRs and managed resources have, so the restore "+
			"ignores it. Find out who wrote to the backup", xp.String(i.original)))

		return nil, false
	}
	items = make([]xp.Item, 0, len(list)) // A list can have 65,536 entries.
	refused := map[reason.Code][]xp.Item{}
	for _, e := range list {
		asked, why := o.accepts(i, e)
		if why != "" {
			refused[why] = append(refused[why], e)
		}
		if asked {
			items = append(items, e)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		i.logWarning(why.Messagef("The stored copy of %s lists %s, which is not restored first: %s", xp.String(i.original), firstFew(refused[why]), notFirst[why]))
	}

	return items, true
}

// firstFew names the first few of the entries of a list.
func firstFew(entries []xp.Item) string {
	const few = 5
	var first []string
	for _, e := range entries[:min(few, len(entries))] {
		first = append(first, strconv.Quote(reason.Clip(e.String(), reason.LongestField)))
	}
	names := strings.Join(first, ", ")
	if more := len(entries) - few; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}

	return names
}

// accepts reports whether an entry of the item's list is requested, and why to warn if it is not.
func (o *Order) accepts(i *item, e xp.Item) (asked bool, why reason.Code) {
	switch {
	case !xp.IsValidName(e.Namespace, e.Name):
		return true, "" // inFilters warns of it.
	case !isXR(i.original) && !isClaim(i.original):
		return acceptsForManaged(i, e)
	case !ofNamespaces(i.restore):
		return true, "" // Any item can come without a request, or by a label, which a user with access to the bucket can write.
	}
	switch e.GroupResource {
	case xp.ResourceManagedDefinition, xp.ResourceActivationPolicy:
		// All tenants share what it activates, and one of them chose what the XR needs. If it is
		// missing, the hold reports that.
		return false, ""
	case xp.ResourceXRD, xp.ResourceComposition, xp.ResourceRevision:
		if !isXR(i.original) || !runsOn(xp.CompositeFrom(i.original), e) {
			return false, reason.PlatformLeftOut
		}

		return o.requestPlatform(i, e), ""
	}
	if e.Namespace != "" {
		// What is in another included namespace comes with that, unless the restore selects by
		// label. A connection Secret may have to come first.
		return e.GroupResource == resourceSecrets || e.Namespace == i.GetNamespace() || isSelective(i.restore) || !included(i.restore, e.Namespace), ""
	}
	if !isComposable(e) {
		return false, reason.ClusterScopedLeftOut
	}
	o.Requested.add(i.original, e.Group, e.Name)

	return true, ""
}

// acceptsForManaged is accepts for an MR, which has only its ProviderConfig on its list. A
// cluster-scoped one does not show whose it is, so a namespaced MR does not request it.
func acceptsForManaged(mr *item, e xp.Item) (asked bool, why reason.Code) {
	switch {
	case !isConfigOf(mr.original, e):
		return false, reason.BackupTampered
	case ofNamespaces(mr.restore) && e.Namespace == "" && mr.GetNamespace() != "":
		return false, reason.ClusterScopedLeftOut
	default:
		return true, ""
	}
}

// isConfigOf reports whether an entry is the MR's ProviderConfig, of its group or a parent of that.
func isConfigOf(mr *unstructured.Unstructured, i xp.Item) bool {
	ref := xp.Strings(mr.Object, "spec", "providerConfigRef")
	kind, name, group := cmp.Or(ref["kind"], "ProviderConfig"), ref["name"], mr.GroupVersionKind().Group

	return xp.IsProviderConfigKind(kind) && i.Resource == strings.ToLower(kind)+"s" && i.Name == name &&
		xp.IsCustomGroup(i.Group) && (i.Group == group || strings.HasSuffix(group, "."+i.Group)) &&
		(i.Namespace == "" || i.Namespace == mr.GetNamespace())
}

// isComposable reports whether an XR can compose a cluster-scoped item, and this plugin's actions
// see it when it comes. They see those of Kubernetes' kinds only with Crossplane's labels.
func isComposable(i xp.Item) bool {
	switch {
	case !xp.IsCustomGroup(i.Group):
		return false
	case xp.IsCrossplaneGroup(i.Group):
		return slices.Contains([]string{"usages", "clusterusages", "environmentconfigs"}, i.Resource)
	default:
		return true
	}
}

// runsOn reports whether an XR itself names an XRD, Composition or revision. Of an XRD's name it
// compares the group only: the plural is known only if the kind is served.
func runsOn(xr xp.Composite, i xp.Item) bool {
	switch i.GroupResource {
	case xp.ResourceRevision:
		return i.Name == xr.Revision()
	case xp.ResourceComposition:
		return i.Name == xr.Composition()
	default:
		return strings.HasSuffix(i.Name, "."+xr.GroupVersionKind().Group)
	}
}

// requestPlatform records that an XR requests something that it runs on. It is false if Velero has
// left that out before: Velero comes to an item only once.
func (o *Order) requestPlatform(xr *item, e xp.Item) bool {
	if by, left := o.Requested.leftOutFor(xr.GroupVersionKind().GroupKind(), e.Group, e.Name); left {
		xr.logWarning(reason.PlatformLeftOut.Messagef("%s runs on %q, which the restore left out when %s named it, which is of another kind. Restore again with "+
			"--include-cluster-resources=true", xp.String(xr.original), e.String(), by))

		return false
	}
	o.Requested.add(xr.original, e.Group, e.Name)

	return true
}

// unlisted returns what an item itself names to come before it, for a backup without the plugin.
func (o *Order) unlisted(i *item) ([]xp.Item, error) {
	switch {
	case isXR(i.original):
		return o.prerequisites(i)
	case isClaim(i.original):
		ref, ok := xp.ClaimFrom(i.original).CompositeRef()
		if !ok || ref.GroupVersionKind().Group != i.GroupVersionKind().Group {
			return nil, nil // An XRD has one group for both.
		}

		return o.itemsFor(i, []xp.Ref{ref})
	case xp.IsRevision(i.original):
		return o.compositionOf(i), nil
	default:
		return nil, nil
	}
}

// compositionOf returns the Composition of a revision: beside one that the restore does not bring,
// the revision gets another number. In a restore of namespaces an XR must have requested it.
func (o *Order) compositionOf(revision *item) []xp.Item {
	c, ok := xp.Controller(revision.original)
	r := xp.Ref{APIVersion: c.APIVersion, Kind: c.Kind, Name: c.Name}
	if !ok || r.GroupVersionKind().GroupKind() != xp.KindComposition.GroupKind() || o.Requested.live.has(r.ID()) ||
		ofNamespaces(revision.restore) && !o.Requested.isRequested(itemName{group: xp.GroupAPIExtensions, name: c.Name}) {
		return nil
	}

	return []xp.Item{{GroupResource: xp.ResourceComposition, Name: c.Name}}
}

// prerequisites returns what an XR names to run on. If that is of another kind, foreign refuses it.
func (o *Order) prerequisites(xr *item) ([]xp.Item, error) {
	c := xp.CompositeFrom(xr.original)
	items := []xp.Item{{GroupResource: xp.ResourceRevision, Name: c.Revision()}, {GroupResource: xp.ResourceComposition, Name: c.Composition()}}
	gvr, _, err := o.kinds.Resource(c.GroupVersionKind())
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, apiErrorf("cannot find the XRD of %s: %w", xp.String(xr.original), err)
	}
	if err == nil {
		items = append(items, xp.Item{GroupResource: xp.ResourceXRD, Name: gvr.GroupResource().String()})
	}

	return slices.DeleteFunc(items, func(e xp.Item) bool {
		return e.Name == "" || ofNamespaces(xr.restore) && xp.IsValidName(e.Namespace, e.Name) && !o.requestPlatform(xr, e)
	}), nil
}
