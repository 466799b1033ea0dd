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

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Why what an item names, or the list on its stored copy has, is not asked for.
const (
	namedCluster  = ", which is of no namespace; to restore it, add --include-cluster-resources=true"
	namedXRs      = ", which comes only with the XRs that run on it; to restore it, add --include-cluster-resources=true"
	listedCluster = ", and what is of no namespace is not asked for; to restore it, add --include-cluster-resources=true"
	listedXRs     = ", and such comes only with the XRs that run on it; to restore it, add --include-cluster-resources=true"
	listedConfig  = ", and a managed resource comes only after the ProviderConfig that it names itself; find out who has written to the backup"
)

// isXR and isClaim tell whether an item is one that can have been backed up as such: a Secret can
// have the finalizer of an XR.
func isXR(item *unstructured.Unstructured) bool { return isInstance(item) && xp.IsComposite(item) }

func isClaim(item *unstructured.Unstructured) bool { return isInstance(item) && xp.IsClaim(item) }

func isInstance(item *unstructured.Unstructured) bool {
	group := item.GroupVersionKind().Group

	return xp.IsCustomGroup(group) && !xp.IsCrossplaneGroup(group)
}

// listed returns what the backup has noted on its copy of an item to come before it; ok is false if
// there is no note of this plugin's. No tenant can write one, but whoever can write to the bucket
// can. So in a restore of namespaces it says no more than the item itself might: what is
// cluster-scoped must say whose it is when it comes, and what no action of this plugin would see is
// not asked for.
func (o *Order) listed(item *unstructured.Unstructured, restore *velerov1.Restore) (items []xp.Item, ok bool) {
	list, ok, err := xp.RestoreFirst(item)
	if err != nil {
		// A backup that this plugin took part in has one that can be read.
		o.log.WithError(err).Warn("The list of what to restore first is not this plugin's; going by what the item itself says")
	}
	if !ok {
		return nil, false
	}
	if !isInstance(item) || !xp.IsComposite(item) && !xp.IsClaim(item) && !xp.IsManaged(item) {
		o.log.WithField("object", xp.String(item)).Warn("The list of what to restore first on " + xp.String(item) + " is not this plugin's, which writes none on " +
			"what is no claim, XR or managed resource; find out who has written to the backup")

		return nil, false
	}
	refused := map[string][]string{}
	for _, i := range list {
		asked, why := o.believes(item, i, restore)
		if why != "" {
			refused[why] = append(refused[why], strconv.Quote(i.String()))
		}
		if asked {
			items = append(items, i)
		}
	}
	for _, why := range []string{listedXRs, listedCluster, listedConfig} {
		o.warnOfListed(item, refused[why], why)
	}

	return items, true
}

// warnOfListed names the first few of the entries of a list that are not asked for.
func (o *Order) warnOfListed(item *unstructured.Unstructured, entries []string, why string) {
	const few = 5
	if len(entries) == 0 {
		return
	}
	named := strings.Join(entries[:min(few, len(entries))], ", ")
	if more := len(entries) - few; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	o.log.WithField("object", xp.String(item)).Warn("Not restored first: the stored copy of " + xp.String(item) + " lists " + named + why)
}

// believes reports whether an entry of the list on an item is asked for, and if not so, why not, ""
// if that is nothing to name.
func (o *Order) believes(item *unstructured.Unstructured, i xp.Item, restore *velerov1.Restore) (asked bool, why string) {
	switch {
	case !xp.IsValidName(i.Namespace, i.Name):
		return true, "" // It is named with the others that can't exist.
	case !isXR(item) && !isClaim(item):
		return believesOfManaged(item, i, restore)
	case !ofNamespaces(restore):
		return true, "" // Everything can come by itself, or by a label, which whoever writes to the bucket can write too.
	case isActivation(i):
		// What it activates is everybody's, and which of it a tenant's XR needs that tenant has
		// chosen. If it is missing, the hold says so.
		return false, ""
	case isPlatform(i), isStoreConfig(i):
		return o.believesOfXR(item, i)
	case i.Namespace != "":
		// What is in another namespace of the restore comes with that, unless only some labels do.
		// A connection Secret may have to come first.
		return i.GroupResource == resourceSecrets || i.Namespace == item.GetNamespace() || isSelective(restore) || !included(restore, i.Namespace), ""
	case !isComposable(i):
		return false, listedCluster
	default:
		o.requested.add(item, i.Group, i.Name)

		return true, ""
	}
}

// believesOfXR is believes for what only XRs bring: what they run on, and where Crossplane
// publishes for them.
func (o *Order) believesOfXR(item *unstructured.Unstructured, i xp.Item) (asked bool, why string) {
	if isStoreConfig(i) {
		return isStoreOf(item, i), ""
	}
	if !isXR(item) || !runsOn(xp.CompositeFrom(item), i) {
		return false, listedXRs
	}

	return o.asksFor(item, i), ""
}

// believesOfManaged is believes for the list on an MR, which has its ProviderConfig and its
// StoreConfig and nothing else. One that is cluster-scoped is the platform's: nothing in it says
// whose it is, so what is in a namespace does not bring it.
func believesOfManaged(mr *unstructured.Unstructured, i xp.Item, restore *velerov1.Restore) (asked bool, why string) {
	switch {
	case !isConfigOf(mr, i):
		return false, listedConfig
	case ofNamespaces(restore) && i.Namespace == "" && mr.GetNamespace() != "":
		return false, listedCluster
	default:
		return true, ""
	}
}

func isPlatform(i xp.Item) bool {
	return i.GroupResource == xp.ResourceXRD || i.GroupResource == xp.ResourceComposition || i.GroupResource == xp.ResourceRevision
}

// isActivation reports whether an item has kinds served.
func isActivation(i xp.Item) bool {
	return i.GroupResource == xp.ResourceManagedDefinition || i.GroupResource == xp.ResourceActivationPolicy
}

// isStoreConfig reports whether an item says where Crossplane publishes connection details.
func isStoreConfig(i xp.Item) bool {
	return i.Group == xp.GroupSecrets && i.Resource == resourceOf(xp.KindStoreConfig)
}

// isStoreOf reports whether an XR itself names the StoreConfig. It is the platform's, as the
// ProviderConfig of a cluster-scoped MR, and so is what an XR that is cluster-scoped too publishes
// with: its Composition says that, and no claim.
func isStoreOf(xr *unstructured.Unstructured, i xp.Item) bool {
	_, store, publishes := xp.StoreSecret(xr)

	return publishes && isXR(xr) && xr.GetNamespace() == "" && i.Namespace == "" && i.Name == store
}

// resourceOf is what the resource of a kind of configs is called.
func resourceOf(kind string) string { return strings.ToLower(kind) + "s" }

// isConfigOf reports whether an entry is the ProviderConfig or the StoreConfig that an MR names,
// which is of the MR's group or of one above that.
func isConfigOf(mr *unstructured.Unstructured, i xp.Item) bool {
	ref, _, _ := unstructured.NestedStringMap(mr.Object, "spec", "providerConfigRef")
	kind, name, group := cmp.Or(ref["kind"], "ProviderConfig"), ref["name"], mr.GroupVersionKind().Group
	if _, store, publishes := xp.StoreSecret(mr); publishes && i.Resource == resourceOf(xp.KindStoreConfig) {
		kind, name = xp.KindStoreConfig, store
	}

	return xp.IsProviderConfigKind(kind) && i.Resource == resourceOf(kind) && i.Name == name &&
		xp.IsCustomGroup(i.Group) && (i.Group == group || strings.HasSuffix(group, "."+i.Group)) &&
		(i.Namespace == "" || i.Namespace == mr.GetNamespace())
}

// isComposable reports whether what is cluster-scoped can be an XR's own, and this plugin is asked
// about it when it comes. Of Kubernetes' own kinds it is not isRequested about what has no labels
// of Crossplane's.
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

// runsOn reports whether an XR itself says that it needs an XRD, Composition or revision. That of
// an XRD's name which is not its group is known only from what serves the kind.
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

// asksFor takes note that an XR asks for something that it runs on. It reports whether that makes
// sense: Velero comes to an item only once.
func (o *Order) asksFor(xr *unstructured.Unstructured, i xp.Item) bool {
	gk := xr.GroupVersionKind().GroupKind()
	if by, left := o.requested.leftOutFor(gk, i.Group, i.Name); left {
		o.log.WithFields(logrus.Fields{"object": xp.String(xr), "item": i.String()}).Warn("Not restored first: " + xp.String(xr) + " runs on " +
			strconv.Quote(i.String()) + ", which Velero has come to before, when only " + by + " had named it, which is of another kind; restore again with " +
			"--include-cluster-resources=true")

		return false
	}
	o.requested.add(xr, i.Group, i.Name)

	return true
}

// unlisted is what is best known to come before an item without the plugin at backup time.
func (o *Order) unlisted(item *unstructured.Unstructured, restore *velerov1.Restore) ([]xp.Item, error) {
	switch {
	case isXR(item):
		return o.prerequisites(xp.CompositeFrom(item), restore)
	case isClaim(item):
		return o.composite(item, restore)
	default:
		return nil, nil
	}
}

// composite returns the XR that a claim names. Only a custom resource of the claim's own group can
// be one.
func (o *Order) composite(claim *unstructured.Unstructured, restore *velerov1.Restore) ([]xp.Item, error) {
	ref, ok := xp.ClaimFrom(claim).CompositeRef()
	if !ok || ref.GroupVersionKind().Group != claim.GroupVersionKind().Group {
		return nil, nil // An XRD has one group for both.
	}

	return o.ask(claim, []xp.Ref{ref}, restore)
}

// prerequisites returns what an XR says that it runs on. It can name a Composition of another kind,
// which is asked of that when it comes.
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
		return nil, fmt.Errorf("cannot find the XRD of %s: %w", xp.String(c.Unstructured), err)
	}
	if err == nil {
		items = append(items, xp.Item{GroupResource: xp.ResourceXRD, Name: gvr.GroupResource().String()})
	}
	if !ofNamespaces(restore) {
		return items, nil
	}

	return slices.DeleteFunc(items, func(i xp.Item) bool {
		return xp.IsValidName(i.Namespace, i.Name) && !o.asksFor(c.Unstructured, i)
	}), nil
}
