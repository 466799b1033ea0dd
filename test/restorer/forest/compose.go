package forest

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// compose adds composed resources of an XR, and objects that only look composed.
func (g *generator) compose(xr *Object, at position) {
	var refs []any
	list := func(r xp.Ref) { refs = append(refs, refFields(r, !xr.Kind.Namespaced)) }
	var siblings []*Object
	for n := g.IntN(8); n > 0 && g.remaining > 0; n-- {
		child := g.child(xr, at, siblings)
		siblings = append(siblings, child)
		if !g.attach(xr, child, at) {
			continue
		}
		list(xp.RefTo(child.Unstructured))
		if g.chance(3) {
			list(xp.RefTo(child.Unstructured)) // A ref can be listed twice.
		}
	}
	if g.chance(15) {
		r := g.missingRef(pick(g, clusterMR, localMR, unservedKind), xr.GetNamespace())
		list(r)
		xr.Unfollowed = append(xr.Unfollowed, r)
	}
	if g.chance(5) {
		refs = append(refs, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}) // Crossplane has not named it yet.
	}
	if len(refs) > 0 || len(xr.GetFinalizers()) == 0 || g.chance(50) {
		set(xr, append([]any{}, refs...), at.path(xr.Kind, "resourceRefs")...)
	}
}

// child adds one object that an XR can compose.
func (g *generator) child(xr *Object, at position, siblings []*Object) *Object {
	below := at
	below.depth--
	if xr.Kind.Namespaced {
		if at.depth > 0 && g.chance(30) {
			return g.xr(modernXR, below)
		}
		switch k := pick(g, localMR, localMR, localMR, configMap, deployment, widget, usage); k {
		case localMR:
			return g.managed(k, at.ns)
		case usage:
			return g.usage(k, at.ns, siblings)
		default:
			return g.native(k, at.ns)
		}
	}
	if g.chance(15) {
		below.ns = pick(g, g.Namespaces...)
	}
	if at.depth > 0 && g.chance(30) {
		if xr.Kind == clusterXR && g.chance(50) {
			return g.xr(modernXR, below)
		}

		return g.xr(xr.Kind, below)
	}
	switch k := pick(g, clusterMR, clusterMR, clusterMR, localMR, gadget, configMap, deployment, widget, oldUsage, wideUsage); k {
	case clusterMR, localMR:
		return g.managed(k, below.ns)
	case oldUsage, wideUsage:
		return g.usage(k, "", siblings)
	default:
		return g.native(k, below.ns)
	}
}

// usage adds a Usage between two of the others.
func (g *generator) usage(k Kind, ns string, others []*Object) *Object {
	u := g.add(k, RoleUsage, ns, "")
	for _, field := range []string{"of", "by"} {
		r := g.missingRef(localMR, ns)
		if len(others) > 0 && g.chance(85) {
			r = xp.RefTo(pick(g, others...).Unstructured)
		}
		ref := map[string]any{"name": r.Name}
		if r.Namespace != "" && k == wideUsage {
			ref["namespace"] = r.Namespace
		}
		set(u, map[string]any{"apiVersion": r.APIVersion, "kind": r.Kind, "resourceRef": ref}, "spec", field)
		if g.chance(40) {
			break
		}
	}

	return u
}

// attach makes an XR compose an object, or makes it look so. It reports whether the XR lists the
// object.
func (g *generator) attach(xr, child *Object, at position) bool {
	child.parent = xr
	label(child, xp.LabelComposite, at.root)
	if at.claim != "" {
		label(child, "crossplane.io/claim-name", at.claim)
		label(child, xp.LabelClaimNamespace, at.claimNS)
	}
	if g.chance(95) {
		annotate(child, xp.AnnotationResourceName, "r")
	}
	g.otherOwners(child)
	belongs := func(controlled bool) {
		child.Composer, child.Controlled = xr, controlled
		xr.Needs = append(xr.Needs, child)
	}
	control := func() { addOwner(child, ownerOf(xr.Unstructured, true)) }
	switch n := g.IntN(100); {
	case n < 78:
		control()
		belongs(true)
	case n < 83:
		child.Shape = "composed and not controlled"
		belongs(false)
	case n < 87:
		child.Shape = "controlled by another"
		r := ownerOf(xr.Unstructured, true)
		r.Name, r.UID = "somebody", g.unknownUID()
		if other := g.otherRoot(xr, child); other != nil {
			r = ownerOf(other.Unstructured, true)
		}
		addOwner(child, r)
		xr.Unfollowed = append(xr.Unfollowed, xp.RefTo(child.Unstructured))
	case n < 91:
		child.Shape = "controlled and not listed"
		control()

		return false
	case n < 94:
		child.Shape = "being deleted"
		control()
		g.markDeleting(child)
		xr.Unfollowed = append(xr.Unfollowed, xp.RefTo(child.Unstructured))
	case n < 96:
		child.Shape = "kept out of backups"
		control()
		label(child, velerov1.ExcludeFromBackupLabel, "true")
		xr.Unfollowed = append(xr.Unfollowed, xp.RefTo(child.Unstructured))
	default:
		control()
		belongs(true)
	}

	return true
}

// otherRoot returns an XR that could own an object and does not list it, nil if there is none.
func (g *generator) otherRoot(xr, o *Object) *Object {
	if len(g.roots) == 0 {
		return nil
	}
	other := pick(g, g.roots...)
	if other == xr || other.Kind.Namespaced && other.GetNamespace() != o.GetNamespace() {
		return nil
	}

	return other
}

// otherOwners adds owners that are not the controller.
func (g *generator) otherOwners(o *Object) {
	if g.chance(8) {
		addOwner(o, metav1.OwnerReference{APIVersion: unservedKind.GroupVersion().String(), Kind: unservedKind.Kind, Name: "missing", UID: g.unknownUID()})
	}
	if g.chance(8) {
		addOwner(o, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: g.unknownUID(), Controller: ptr.To(false)})
	}
	if !g.chance(20) {
		return
	}
	other := pick(g, g.Objects...)
	if other == o || other.Role == RoleXR || other.Kind.Namespaced && other.GetNamespace() != o.GetNamespace() {
		return
	}
	addOwner(o, ownerOf(other.Unstructured, false))
}

// markDeleting sets a deletion timestamp.
func (*generator) markDeleting(o *Object) {
	set(o, "2026-01-02T03:04:05Z", "metadata", "deletionTimestamp")
	if len(o.GetFinalizers()) == 0 {
		o.SetFinalizers([]string{"example.org/stays"})
	}
}
