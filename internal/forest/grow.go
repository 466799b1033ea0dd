package forest

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// deepest is how far below the root of a tree an XR can be.
const deepest = 5

// platform grows what all XRs of a kind share, which is not counted.
func (g *grower) platform() {
	left := g.left
	g.xrds, g.onto, g.config = map[Kind]*Object{}, map[Kind][]composing{}, map[string]*Object{}
	for _, k := range []Kind{legacyXR, modernXR, clusterXR} {
		d := g.add(xrd, RolePlatform, "", k.Resource().String())
		set(d, k.Group, "spec", "group")
		set(d, map[string]any{"kind": k.Kind, "plural": k.Plural}, "spec", "names")
		if k == legacyXR {
			set(d, map[string]any{"kind": claimKind.Kind, "plural": claimKind.Plural}, "spec", "claimNames")
		}
		g.xrds[k] = d
		for n := range 2 {
			c := g.add(composition, RolePlatform, "", fmt.Sprintf("%s-%d", k.Plural, n))
			of := map[string]any{"apiVersion": k.GroupVersion().String(), "kind": k.Kind}
			set(c, of, "spec", "compositeTypeRef")
			r := g.add(revision, RolePlatform, "", fmt.Sprintf("%s-%d-abc", k.Plural, n))
			set(r, of, "spec", "compositeTypeRef")
			set(r, int64(n+1), "spec", "revision")
			label(r, xp.LabelCompositionName, c.GetName())
			own(r, ownerOf(c.Unstructured, true))
			g.onto[k] = append(g.onto[k], composing{c, r})
		}
	}
	g.config["cluster"] = g.add(config, RoleConfig, "", "default")
	g.config["wide"] = g.add(wideConfig, RoleConfig, "", "default")
	for _, ns := range g.Namespaces {
		if g.chance(50) {
			g.config[ns] = g.add(localConfig, RoleConfig, ns, "default")
		}
	}
	g.left = left
}

// grow grows one tree, or something that is in none.
func (g *grower) grow() {
	ns := one(g, g.Namespaces...)
	switch n := g.IntN(100); {
	case n < 30:
		at := place{ns: ns, depth: 1 + g.IntN(deepest), claim: g.name(claimKind, ns), claimNS: ns}
		g.claim(g.xr(legacyXR, at), at)
	case n < 40:
		g.roots = append(g.roots, g.xr(legacyXR, place{ns: ns, depth: 1 + g.IntN(deepest)}))
	case n < 65:
		g.roots = append(g.roots, g.xr(modernXR, place{ns: ns, depth: 1 + g.IntN(deepest)}))
	case n < 72:
		g.roots = append(g.roots, g.xr(clusterXR, place{ns: ns, depth: 1 + g.IntN(deepest)}))
	case n < 80:
		g.managed(one(g, clusterMR, localMR), ns)
	case n < 84:
		g.lostClaim(ns)
	case n < 90:
		g.loner(ns)
	default:
		g.hostile(ns)
	}
}

// A place is where in a tree something grows.
type place struct {
	// ns is where what is namespaced goes.
	ns    string
	depth int
	// root is the name of the XR at the top, and claim and claimNS those of its claim; "" if there
	// is none.
	root, claim, claimNS string
}

// xr grows an XR with all below it.
func (g *grower) xr(k Kind, at place) *Object {
	xr := g.add(k, RoleXR, at.ns, "")
	if at.root == "" {
		at.root = xr.GetName()
	}
	if g.chance(85) {
		xr.SetFinalizers([]string{xp.FinalizerComposite})
	}
	c := one(g, g.onto[k]...)
	set(xr, map[string]any{"name": c.composition.GetName()}, at.of(k, "compositionRef")...)
	xr.Brings = append(xr.Brings, g.xrds[k], c.composition)
	switch n := g.IntN(100); {
	case n < 80:
		set(xr, map[string]any{"name": c.revision.GetName()}, at.of(k, "compositionRevisionRef")...)
		xr.Brings = append(xr.Brings, c.revision)
	case n < 86:
		missing := g.nobody(revision, "")
		set(xr, map[string]any{"name": missing.Name}, at.of(k, "compositionRevisionRef")...)
		xr.Astray = append(xr.Astray, missing)
	case n < 92:
		other := one(g, g.onto[otherThan(k)]...).revision
		set(xr, map[string]any{"name": other.GetName()}, at.of(k, "compositionRevisionRef")...)
		xr.Astray = append(xr.Astray, xp.RefTo(other.Unstructured))
	}
	g.preferences(xr)
	g.status(xr, map[string]any{"address": "a"})
	g.compose(xr, at)
	g.publish(xr, at.ns)

	return xr
}

func otherThan(k Kind) Kind {
	if k == legacyXR {
		return modernXR
	}

	return legacyXR
}

// of is the path of a field that Crossplane owns.
func (place) of(k Kind, field string) []string {
	if k == legacyXR || k == claimKind {
		return []string{"spec", field}
	}

	return []string{"spec", "crossplane", field}
}

// preferences are what a person can have set.
func (g *grower) preferences(o *Object) {
	if g.chance(20) {
		annotate(o, xp.AnnotationPaused, one(g, "true", "false", ""))
	}
	if g.chance(30) && o.Role != RoleMR {
		set(o, one(g, "Manual", "Automatic"), place{}.of(o.Kind, "compositionUpdatePolicy")...)
	}
	if g.chance(10) {
		annotate(o, xp.AnnotationRestoreStatus, one(g, "true", "false"))
	}
	if g.chance(20) {
		annotate(o, "example.org/theirs", "kept")
	}
	if g.chance(10) {
		label(o, "app", one(g, "shop", "blog"))
	}
}

// status is what a controller has said of an object, at times.
func (g *grower) status(o *Object, more map[string]any) {
	if g.chance(25) {
		return
	}
	status := map[string]any{}
	if g.chance(40) {
		status = more
	}
	var conditions []any
	for _, t := range []string{xp.ConditionReady, xp.ConditionSynced} {
		conditions = append(conditions, map[string]any{
			"type": t, "status": one(g, "True", "True", "True", "False"), "reason": "R", "lastTransitionTime": "2026-01-02T03:04:05Z",
		})
	}
	status["conditions"] = conditions
	o.Object["status"] = status
}

// claim gives an XR a claim that it is bound to.
func (g *grower) claim(xr *Object, at place) {
	c := g.add(claimKind, RoleClaim, at.ns, at.claim)
	if g.chance(85) {
		c.SetFinalizers([]string{xp.FinalizerClaim})
	}
	set(c, map[string]any{"name": text(xr.Unstructured, "spec", "compositionRef", "name")}, "spec", "compositionRef")
	set(c, refer(xp.RefTo(xr.Unstructured), false), "spec", "resourceRef")
	set(xr, refer(xp.RefTo(c.Unstructured), true), "spec", "claimRef")
	g.preferences(c)
	g.publish(c, at.ns)
	c.Brings = append(c.Brings, xr)
	xr.Brings = append(xr.Brings, c)
}

// lostClaim grows a claim whose XR does not exist, or is another's.
func (g *grower) lostClaim(ns string) {
	c := g.add(claimKind, RoleClaim, ns, "")
	c.Shape = "claim without an XR"
	c.SetFinalizers([]string{xp.FinalizerClaim})
	set(c, map[string]any{"name": "orders"}, "spec", "compositionRef")
	if g.chance(30) {
		return
	}
	r := g.nobody(legacyXR, "")
	set(c, refer(r, false), "spec", "resourceRef")
	c.Astray = append(c.Astray, r)
	g.preferences(c)
}

// managed grows an MR, in all states of identity.
func (g *grower) managed(k Kind, ns string) *Object {
	mr := g.add(k, RoleMR, ns, "")
	set(mr, map[string]any{"region": "eu"}, "spec", "forProvider")
	annotations := map[string]string{}
	switch n := g.IntN(100); {
	case n < 75:
		annotations[xp.AnnotationExternalName] = one(g, mr.GetName(), "cloud-1", "cloud-2")
	case n < 80:
		annotations[xp.AnnotationCreatePending] = "2026-01-02T03:04:05Z"
	case n < 85:
		annotations[xp.AnnotationCreateSucceeded] = "2026-01-02T03:04:05Z"
	}
	mr.SetAnnotations(annotations)
	if annotations[xp.AnnotationExternalName] == "" || g.chance(85) {
		mr.SetFinalizers([]string{xp.FinalizerManaged})
	}
	if g.chance(15) {
		set(mr, one(g, []any{"*"}, []any{xp.PolicyObserve}, []any{"Create", "Update"}, []any{}), "spec", "managementPolicies")
	}
	g.preferences(mr)
	g.status(mr, map[string]any{"atProvider": map[string]any{"id": one(g, "cloud-1", "cloud-3")}})
	g.configure(mr)
	g.publish(mr, one(g, g.Namespaces...))

	return mr
}

// configure has an MR name a ProviderConfig, which may not exist.
func (g *grower) configure(mr *Object) {
	if g.chance(30) {
		return
	}
	ref, to := map[string]any{"name": "default"}, g.config["cluster"]
	if mr.Kind.Namespaced {
		to = g.config[mr.GetNamespace()]
		if g.chance(50) {
			ref["kind"], to = wideConfig.Kind, g.config["wide"]
		}
	}
	set(mr, ref, "spec", "providerConfigRef")
	if to != nil {
		mr.Brings = append(mr.Brings, to)
	}
}

// publish gives an object a connection secret, at times one that it does not control.
func (g *grower) publish(o *Object, ns string) {
	if !g.chance(25) || g.left < 1 {
		return
	}
	if o.Kind.Namespaced {
		ns = o.GetNamespace()
	}
	name := g.name(secret, ns)
	to := map[string]any{"name": name}
	if !o.Kind.Namespaced || g.chance(20) {
		to["namespace"] = one(g, ns, ns)
		if o.Kind.Namespaced {
			to["namespace"] = one(g, g.Namespaces...) // It publishes in its own namespace, whatever it says.
		}
	}
	set(o, to, "spec", "writeConnectionSecretToRef")
	if g.chance(15) {
		return // It was not published yet.
	}
	s := g.add(secret, RoleSecret, ns, name)
	set(s, xp.SecretTypeConnection, "type")
	set(s, map[string]any{"password": "c2VjcmV0"}, "data")
	if g.chance(85) {
		own(s, ownerOf(o.Unstructured, true))
		o.Publishes = s
		o.Brings = append(o.Brings, s)

		return
	}
	s.Shape = "connection secret that is another's"
	if g.chance(50) {
		own(s, metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: "somebody", UID: g.stranger(), Controller: ptr.To(true)})
	}
	o.Astray = append(o.Astray, xp.RefTo(s.Unstructured))
}

// loner grows what has nothing to do with Crossplane, or is made by its control plane.
func (g *grower) loner(ns string) {
	if g.chance(20) {
		u := g.add(configUsage, RoleRebuilt, "", "")
		label(u, "crossplane.io/provider-config", "default")

		return
	}
	o := g.native(one(g, widget, gadget, configMap, deployment), ns)
	if g.chance(50) {
		own(o, metav1.OwnerReference{
			APIVersion: "foreign.io/v1", Kind: one(g, "Widget", "Gadget"), Name: one(g, "a", "x-1"), UID: g.stranger(), Controller: ptr.To(g.chance(50)),
		})
	}
}

// native grows an object of Kubernetes' own or of a foreign group.
func (g *grower) native(k Kind, ns string) *Object {
	o := g.add(k, RoleOther, ns, "")
	switch k {
	case configMap:
		o.Object["data"] = map[string]any{"key": "value"}
	case deployment:
		labels := map[string]any{"app": "grown"}
		containers := []any{map[string]any{"name": "c", "image": "i"}}
		set(o, map[string]any{
			"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": containers}},
		}, "spec")
	default:
		set(o, map[string]any{"size": "small"}, "spec", "parameters")
	}

	return o
}
