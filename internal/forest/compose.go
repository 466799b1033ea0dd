package forest

import (
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// compose grows what an XR composes, and what it only says that it does.
func (g *grower) compose(xr *Object, at place) {
	var refs []any
	list := func(r xp.Ref) { refs = append(refs, refer(r, !xr.Kind.Namespaced)) }
	var siblings []*Object
	for n := g.IntN(8); n > 0 && g.left > 0; n-- {
		child := g.child(xr, at, siblings)
		siblings = append(siblings, child)
		if !g.join(xr, child, at) {
			continue
		}
		list(xp.RefTo(child.Unstructured))
		if g.chance(3) {
			list(xp.RefTo(child.Unstructured)) // Twice.
		}
	}
	if g.chance(15) {
		r := g.nobody(one(g, clusterMR, localMR, ghost), xr.GetNamespace())
		list(r)
		xr.Astray = append(xr.Astray, r)
	}
	if g.chance(5) {
		refs = append(refs, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}) // Crossplane has not named it yet.
	}
	if len(refs) > 0 || len(xr.GetFinalizers()) == 0 || g.chance(50) {
		set(xr, append([]any{}, refs...), at.of(xr.Kind, "resourceRefs")...)
	}
}

// child grows one object that an XR can compose.
func (g *grower) child(xr *Object, at place, siblings []*Object) *Object {
	below := at
	below.depth--
	if xr.Kind.Namespaced {
		if at.depth > 0 && g.chance(30) {
			return g.xr(modernXR, below)
		}
		switch k := one(g, localMR, localMR, localMR, configMap, deployment, widget, usage); k {
		case localMR:
			return g.managed(k, at.ns)
		case usage:
			return g.use(k, at.ns, siblings)
		default:
			return g.native(k, at.ns)
		}
	}
	if g.chance(15) {
		below.ns = one(g, g.Namespaces...)
	}
	if at.depth > 0 && g.chance(30) {
		if xr.Kind == clusterXR && g.chance(50) {
			return g.xr(modernXR, below)
		}

		return g.xr(xr.Kind, below)
	}
	switch k := one(g, clusterMR, clusterMR, clusterMR, localMR, gadget, configMap, deployment, widget, oldUsage, wideUsage); k {
	case clusterMR, localMR:
		return g.managed(k, below.ns)
	case oldUsage, wideUsage:
		return g.use(k, "", siblings)
	default:
		return g.native(k, below.ns)
	}
}

// use grows a Usage of one of the others by another.
func (g *grower) use(k Kind, ns string, others []*Object) *Object {
	u := g.add(k, RoleUsage, ns, "")
	for _, field := range []string{"of", "by"} {
		r := g.nobody(localMR, ns)
		if len(others) > 0 && g.chance(85) {
			r = xp.RefTo(one(g, others...).Unstructured)
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

// join has an XR compose an object, or makes it look like that, and reports whether the XR lists
// it.
func (g *grower) join(xr, child *Object, at place) bool {
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
		xr.Brings = append(xr.Brings, child)
	}
	control := func() { own(child, ownerOf(xr.Unstructured, true)) }
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
		r.Name, r.UID = "somebody", g.stranger()
		if other := g.otherRoot(xr, child); other != nil {
			r = ownerOf(other.Unstructured, true)
		}
		own(child, r)
		xr.Astray = append(xr.Astray, xp.RefTo(child.Unstructured))
	case n < 91:
		child.Shape = "controlled and not listed"
		control()

		return false
	case n < 94:
		child.Shape = "being deleted"
		control()
		g.deleting(child)
		xr.Astray = append(xr.Astray, xp.RefTo(child.Unstructured))
	case n < 96:
		child.Shape = "kept out of backups"
		control()
		label(child, velerov1.ExcludeFromBackupLabel, "true")
		xr.Astray = append(xr.Astray, xp.RefTo(child.Unstructured))
	default:
		control()
		belongs(true)
	}

	return true
}

// otherRoot returns an XR that could own an object and does not list it, nil if there is none.
func (g *grower) otherRoot(xr, o *Object) *Object {
	if len(g.roots) == 0 {
		return nil
	}
	other := one(g, g.roots...)
	if other == xr || other.Kind.Namespaced && other.GetNamespace() != o.GetNamespace() {
		return nil
	}

	return other
}

// otherOwners gives an object owners that are not its controller.
func (g *grower) otherOwners(o *Object) {
	if g.chance(8) {
		own(o, metav1.OwnerReference{APIVersion: ghost.GroupVersion().String(), Kind: ghost.Kind, Name: "casper", UID: g.stranger()})
	}
	if g.chance(8) {
		own(o, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: g.stranger(), Controller: ptr.To(false)})
	}
	if !g.chance(20) {
		return
	}
	other := one(g, g.Objects...)
	if other == o || other.Role == RoleXR || other.Kind.Namespaced && other.GetNamespace() != o.GetNamespace() {
		return
	}
	own(o, ownerOf(other.Unstructured, false))
}

// deleting has an object be on its way out.
func (*grower) deleting(o *Object) {
	set(o, "2026-01-02T03:04:05Z", "metadata", "deletionTimestamp")
	if len(o.GetFinalizers()) == 0 {
		o.SetFinalizers([]string{"example.org/stays"})
	}
}
