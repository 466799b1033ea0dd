package restoreitem

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
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

// isXR and isClaim report whether the backup can have an item as such: a Secret can have an XR's
// finalizer.
func isXR(item *unstructured.Unstructured) bool { return isInstance(item) && xp.IsComposite(item) }

func isClaim(item *unstructured.Unstructured) bool { return isInstance(item) && xp.IsClaim(item) }

func isInstance(item *unstructured.Unstructured) bool {
	group := item.GroupVersionKind().Group

	return xp.IsCustomGroup(group) && !xp.IsCrossplaneGroup(group)
}

// listed returns what the list on the item's stored copy names to come before it; ok is false if
// there is no list of this plugin's. A tenant can't write a list, but a user with access to the
// bucket can. So in a restore of namespaces it grants no more than the item itself could. A
// cluster-scoped item must show whose it is when it comes, and what no action of this plugin checks
// is not requested.
func (o *Order) listed(item *unstructured.Unstructured, restore *velerov1.Restore) (items []xp.Item, ok bool) {
	list, ok, err := xp.RestoreFirst(item)
	if err != nil {
		// This plugin writes only lists that can be read.
		o.warn(o.log, reason.BackupTampered.Messagef("The list on %s of what to restore first can't be read, so the restore uses the object's own references: %v",
			xp.String(item), err))
	}
	if !ok {
		return nil, false
	}
	if !isInstance(item) || !xp.IsComposite(item) && !xp.IsClaim(item) && !xp.IsManaged(item) {
		o.warn(o.log.WithField("object", xp.String(item)), reason.BackupTampered.Messagef("%s has a list of what to restore first, which only claims, XRs and "+
			"managed resources have, so the restore ignores it. Find out who wrote to the backup", xp.String(item)))

		return nil, false
	}
	items = make([]xp.Item, 0, len(list))
	refused := map[reason.Code][]xp.Item{}
	for _, i := range list {
		asked, why := o.accepts(item, i, restore)
		if why != "" {
			refused[why] = append(refused[why], i)
		}
		if asked {
			items = append(items, i)
		}
	}
	for _, why := range []reason.Code{reason.PlatformLeftOut, reason.ClusterScopedLeftOut, reason.BackupTampered} {
		o.warnOfListed(item, refused[why], why)
	}

	return items, true
}

// warnOfListed warns of entries of a list that are not requested, and names the first few.
func (o *Order) warnOfListed(item *unstructured.Unstructured, entries []xp.Item, why reason.Code) {
	const few = 5
	if len(entries) == 0 {
		return
	}
	var first []string
	for _, i := range entries[:min(few, len(entries))] {
		first = append(first, strconv.Quote(reason.Clip(i.String(), reason.LongestField)))
	}
	named := strings.Join(first, ", ")
	if more := len(entries) - few; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	o.warn(o.log.WithField("object", xp.String(item)), why.Messagef("The stored copy of %s lists %s, which is not restored first: %s", xp.String(item), named,
		notFirst[why]))
}

// accepts reports whether an entry of the item's list is requested, and why not, "" if that needs
// no warning.
func (o *Order) accepts(item *unstructured.Unstructured, i xp.Item, restore *velerov1.Restore) (asked bool, why reason.Code) {
	switch {
	case !xp.IsValidName(i.Namespace, i.Name):
		return true, "" // inFilters warns of it.
	case !isXR(item) && !isClaim(item):
		return acceptsForManaged(item, i, restore)
	case !ofNamespaces(restore):
		return true, "" // Any item can come without a request, or by a label, which a user with access to the bucket can write.
	case isActivation(i):
		// All tenants share what it activates, and one of them chose what the XR needs. If it is
		// missing, the hold reports that.
		return false, ""
	case isPlatform(i):
		return o.acceptsForXR(item, i)
	case i.Namespace != "":
		// What is in another included namespace comes with that, unless the restore selects by
		// label. A connection Secret may have to come first.
		return i.GroupResource == resourceSecrets || i.Namespace == item.GetNamespace() || isSelective(restore) || !included(restore, i.Namespace), ""
	case !isComposable(i):
		return false, reason.ClusterScopedLeftOut
	default:
		o.Requested.add(item, i.Group, i.Name)

		return true, ""
	}
}

// acceptsForXR is accepts for what only XRs request: what they run on.
func (o *Order) acceptsForXR(item *unstructured.Unstructured, i xp.Item) (asked bool, why reason.Code) {
	if !isXR(item) || !runsOn(xp.CompositeFrom(item), i) {
		return false, reason.PlatformLeftOut
	}

	return o.requestPlatform(item, i), ""
}

// acceptsForManaged is accepts for an MR, which has only its ProviderConfig on its list. A
// cluster-scoped one is the platform's and does not show whose it is, so a namespaced MR does not
// request it.
func acceptsForManaged(mr *unstructured.Unstructured, i xp.Item, restore *velerov1.Restore) (asked bool, why reason.Code) {
	switch {
	case !isConfigOf(mr, i):
		return false, reason.BackupTampered
	case ofNamespaces(restore) && i.Namespace == "" && mr.GetNamespace() != "":
		return false, reason.ClusterScopedLeftOut
	default:
		return true, ""
	}
}

func isPlatform(i xp.Item) bool {
	return i.GroupResource == xp.ResourceXRD || i.GroupResource == xp.ResourceComposition || i.GroupResource == xp.ResourceRevision
}

// isActivation reports whether an item activates kinds.
func isActivation(i xp.Item) bool {
	return i.GroupResource == xp.ResourceManagedDefinition || i.GroupResource == xp.ResourceActivationPolicy
}

// resourceOf returns the resource of a kind of config.
func resourceOf(kind string) string { return strings.ToLower(kind) + "s" }

// isConfigOf reports whether an entry is the ProviderConfig that an MR names. Its
// group is the MR's or a parent of that.
func isConfigOf(mr *unstructured.Unstructured, i xp.Item) bool {
	ref, _, _ := unstructured.NestedStringMap(mr.Object, "spec", "providerConfigRef")
	kind, name, group := cmp.Or(ref["kind"], "ProviderConfig"), ref["name"], mr.GroupVersionKind().Group

	return xp.IsProviderConfigKind(kind) && i.Resource == resourceOf(kind) && i.Name == name &&
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
func (o *Order) requestPlatform(xr *unstructured.Unstructured, i xp.Item) bool {
	gk := xr.GroupVersionKind().GroupKind()
	if by, left := o.Requested.leftOutFor(gk, i.Group, i.Name); left {
		o.warn(o.log.WithFields(logrus.Fields{"object": xp.String(xr), "item": i.String()}), reason.PlatformLeftOut.Messagef("%s runs on %q, which the restore left "+
			"out when %s named it, which is of another kind. Restore again with --include-cluster-resources=true", xp.String(xr), i.String(), by))

		return false
	}
	o.Requested.add(xr, i.Group, i.Name)

	return true
}

// unlisted returns what an item itself names to come before it, for a backup without the plugin.
func (o *Order) unlisted(item *unstructured.Unstructured, restore *velerov1.Restore) ([]xp.Item, error) {
	switch {
	case isXR(item):
		return o.prerequisites(xp.CompositeFrom(item), restore)
	case isClaim(item):
		return o.composite(item, restore)
	case xp.IsRevision(item):
		return o.compositionOf(item, restore), nil
	default:
		return nil, nil
	}
}

// compositionOf returns the Composition of a revision: beside one that the restore does not bring,
// the revision gets another number. In a restore of namespaces an XR must have requested it.
func (o *Order) compositionOf(revision *unstructured.Unstructured, restore *velerov1.Restore) []xp.Item {
	c, ok := xp.Controller(revision)
	r := xp.Ref{APIVersion: c.APIVersion, Kind: c.Kind, Name: c.Name}
	if !ok || r.GroupVersionKind().GroupKind() != xp.KindComposition.GroupKind() || o.Requested.isLive(r) ||
		ofNamespaces(restore) && !o.Requested.isRequested(clusterScopedName{xp.GroupAPIExtensions, c.Name}) {
		return nil
	}

	return []xp.Item{{GroupResource: xp.ResourceComposition, Name: c.Name}}
}

// composite returns the XR that a claim names, if it is of the claim's group.
func (o *Order) composite(claim *unstructured.Unstructured, restore *velerov1.Restore) ([]xp.Item, error) {
	ref, ok := xp.ClaimFrom(claim).CompositeRef()
	if !ok || ref.GroupVersionKind().Group != claim.GroupVersionKind().Group {
		return nil, nil // An XRD has one group for both.
	}

	return o.itemsFor(claim, []xp.Ref{ref}, restore)
}

// prerequisites returns what an XR names to run on. That can be a Composition of another kind,
// which foreign refuses when it comes.
func (o *Order) prerequisites(c xp.Composite, restore *velerov1.Restore) ([]xp.Item, error) {
	var items []xp.Item
	if name := c.Revision(); name != "" {
		items = append(items, xp.Item{GroupResource: xp.ResourceRevision, Name: name})
	}
	if name := c.Composition(); name != "" {
		items = append(items, xp.Item{GroupResource: xp.ResourceComposition, Name: name})
	}
	gvr, _, err := o.mapper.Resource(c.GroupVersionKind())
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, apiErrorf("cannot find the XRD of %s: %w", xp.String(c.Unstructured), err)
	}
	if err == nil {
		items = append(items, xp.Item{GroupResource: xp.ResourceXRD, Name: gvr.GroupResource().String()})
	}
	if !ofNamespaces(restore) {
		return items, nil
	}

	return slices.DeleteFunc(items, func(i xp.Item) bool {
		return xp.IsValidName(i.Namespace, i.Name) && !o.requestPlatform(c.Unstructured, i)
	}), nil
}
