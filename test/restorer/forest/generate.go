package forest

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// maxDepth is the maximum depth of an XR below the root of its tree.
const maxDepth = 5

// channels label the revisions of each Composition, from the oldest to the newest.
var channels = []string{"stable", "next", "fast"}

// platform adds what all XRs of a kind share. It does not count.
func (g *generator) platform() {
	left := g.remaining
	g.xrds, g.compositions, g.config = map[Kind]*Object{}, map[Kind][]revised{}, map[string]*Object{}
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
			for m, channel := range channels {
				r := g.add(revision, RolePlatform, "", fmt.Sprintf("%s-%d-%s", k.Plural, n, channel))
				set(r, of, "spec", "compositeTypeRef")
				set(r, int64(m+1), "spec", "revision")
				label(r, xp.LabelCompositionName, c.GetName())
				label(r, "channel", channel)
				addOwner(r, ownerOf(c.Unstructured, true))
				g.compositions[k] = append(g.compositions[k], revised{c, r})
			}
		}
	}
	g.config["cluster"] = g.add(config, RoleConfig, "", "default")
	g.config["wide"] = g.add(wideConfig, RoleConfig, "", "default")
	for _, ns := range g.Namespaces {
		if g.chance(50) {
			g.config[ns] = g.add(localConfig, RoleConfig, ns, "default")
		}
	}
	g.remaining = left
}

// addTree adds one tree, or one object outside of all trees.
func (g *generator) addTree() {
	ns := pick(g, g.Namespaces...)
	switch n := g.IntN(100); {
	case n < 30:
		at := position{ns: ns, depth: 1 + g.IntN(maxDepth), claim: g.name(claimKind, ns), claimNS: ns}
		g.claim(g.xr(legacyXR, at), at)
	case n < 40:
		g.roots = append(g.roots, g.xr(legacyXR, position{ns: ns, depth: 1 + g.IntN(maxDepth)}))
	case n < 65:
		g.roots = append(g.roots, g.xr(modernXR, position{ns: ns, depth: 1 + g.IntN(maxDepth)}))
	case n < 72:
		g.roots = append(g.roots, g.xr(clusterXR, position{ns: ns, depth: 1 + g.IntN(maxDepth)}))
	case n < 80:
		g.managed(pick(g, clusterMR, localMR), ns)
	case n < 84:
		g.unboundClaim(ns)
	case n < 90:
		g.unrelated(ns)
	default:
		g.hostile(ns)
	}
}

// A position is a position in a tree.
type position struct {
	// ns is the namespace of namespaced objects.
	ns    string
	depth int
	// root is the name of the root XR, claim and claimNS those of its claim, "" if there is none.
	root, claim, claimNS string
}

// xr adds an XR with all below it.
func (g *generator) xr(k Kind, at position) *Object {
	xr := g.add(k, RoleXR, at.ns, "")
	if at.root == "" {
		at.root = xr.GetName()
	}
	if g.chance(85) {
		xr.SetFinalizers([]string{xp.FinalizerComposite})
	}
	c := pick(g, g.compositions[k]...)
	set(xr, map[string]any{"name": c.composition.GetName()}, at.path(k, "compositionRef")...)
	xr.Needs = append(xr.Needs, g.xrds[k], c.composition)
	switch n := g.IntN(100); {
	case n < 80:
		set(xr, map[string]any{"name": c.revision.GetName()}, at.path(k, "compositionRevisionRef")...)
		xr.Needs = append(xr.Needs, c.revision)
	case n < 86:
		missing := g.missingRef(revision, "")
		set(xr, map[string]any{"name": missing.Name}, at.path(k, "compositionRevisionRef")...)
		xr.Unfollowed = append(xr.Unfollowed, missing)
	case n < 92:
		other := pick(g, g.compositions[otherThan(k)]...).revision
		set(xr, map[string]any{"name": other.GetName()}, at.path(k, "compositionRevisionRef")...)
		xr.Unfollowed = append(xr.Unfollowed, xp.RefTo(other.Unstructured))
	}
	if g.chance(30) {
		set(xr, map[string]any{"matchLabels": map[string]any{"channel": pick(g, channels...)}}, at.path(k, "compositionRevisionSelector")...)
	}
	g.userSettings(xr)
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

// path returns the path of a field that Crossplane owns.
func (position) path(k Kind, field string) []string {
	if k == legacyXR || k == claimKind {
		return []string{"spec", field}
	}

	return []string{"spec", "crossplane", field}
}

// userSettings sets what a user may have set.
func (g *generator) userSettings(o *Object) {
	if g.chance(20) {
		annotate(o, xp.AnnotationPaused, pick(g, "true", "false", ""))
	}
	if g.chance(30) && o.Role != RoleMR {
		set(o, pick(g, "Manual", "Automatic"), position{}.path(o.Kind, "compositionUpdatePolicy")...)
	}
	if g.chance(10) {
		annotate(o, xp.AnnotationRestoreStatus, pick(g, "true", "false"))
	}
	if g.chance(20) {
		annotate(o, "example.org/theirs", "kept")
	}
	if g.chance(10) {
		label(o, "app", pick(g, "shop", "blog"))
	}
}

// status sets a status, at times.
func (g *generator) status(o *Object, more map[string]any) {
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
			"type": t, "status": pick(g, "True", "True", "True", "False"), "reason": "R", "lastTransitionTime": "2026-01-02T03:04:05Z",
		})
	}
	status["conditions"] = conditions
	o.Object["status"] = status
}

// claim adds a claim that is bound to an XR.
func (g *generator) claim(xr *Object, at position) {
	c := g.add(claimKind, RoleClaim, at.ns, at.claim)
	if g.chance(85) {
		c.SetFinalizers([]string{xp.FinalizerClaim})
	}
	set(c, map[string]any{"name": stringAt(xr.Unstructured, "spec", "compositionRef", "name")}, "spec", "compositionRef")
	set(c, refFields(xp.RefTo(xr.Unstructured), false), "spec", "resourceRef")
	set(xr, refFields(xp.RefTo(c.Unstructured), true), "spec", "claimRef")
	g.userSettings(c)
	g.publish(c, at.ns)
	c.Needs = append(c.Needs, xr)
	xr.Needs = append(xr.Needs, c)
}

// unboundClaim adds a claim that names no XR, or a missing one.
func (g *generator) unboundClaim(ns string) {
	c := g.add(claimKind, RoleClaim, ns, "")
	c.Shape = "claim without an XR"
	c.SetFinalizers([]string{xp.FinalizerClaim})
	set(c, map[string]any{"name": "orders"}, "spec", "compositionRef")
	if g.chance(30) {
		return
	}
	r := g.missingRef(legacyXR, "")
	set(c, refFields(r, false), "spec", "resourceRef")
	c.Unfollowed = append(c.Unfollowed, r)
	g.userSettings(c)
}

// managed adds an MR in any state of identity.
func (g *generator) managed(k Kind, ns string) *Object {
	mr := g.add(k, RoleMR, ns, "")
	set(mr, map[string]any{"region": "eu"}, "spec", "forProvider")
	annotations := map[string]string{}
	switch n := g.IntN(100); {
	case n < 75:
		annotations[xp.AnnotationExternalName] = pick(g, mr.GetName(), "cloud-1", "cloud-2")
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
		set(mr, pick(g, []any{"*"}, []any{xp.PolicyObserve}, []any{"Create", "Update"}, []any{}), "spec", "managementPolicies")
	}
	g.userSettings(mr)
	g.status(mr, map[string]any{"atProvider": map[string]any{"id": pick(g, "cloud-1", "cloud-3")}})
	g.configure(mr)
	g.publish(mr, pick(g, g.Namespaces...))

	return mr
}

// configure makes an MR name a ProviderConfig, which may be missing.
func (g *generator) configure(mr *Object) {
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
		mr.Needs = append(mr.Needs, to)
	}
}

// publish adds a connection secret, at times one that the object does not control.
func (g *generator) publish(o *Object, ns string) {
	if !g.chance(25) || g.remaining < 1 {
		return
	}
	if o.Kind.Namespaced {
		ns = o.GetNamespace()
	}
	name := g.name(secret, ns)
	to := map[string]any{"name": name}
	if !o.Kind.Namespaced || g.chance(20) {
		to["namespace"] = pick(g, ns, ns)
		if o.Kind.Namespaced {
			to["namespace"] = pick(g, g.Namespaces...) // It publishes in its own namespace and ignores the field.
		}
	}
	set(o, to, "spec", "writeConnectionSecretToRef")
	if g.chance(15) {
		return // It has not published yet.
	}
	s := g.add(secret, RoleSecret, ns, name)
	set(s, xp.SecretTypeConnection, "type")
	set(s, map[string]any{"password": "c2VjcmV0"}, "data")
	if g.chance(85) {
		addOwner(s, ownerOf(o.Unstructured, true))
		o.Publishes = s
		o.Needs = append(o.Needs, s)

		return
	}
	s.Shape = "connection secret that is another's"
	if g.chance(50) {
		addOwner(s, metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: "somebody", UID: g.unknownUID(), Controller: ptr.To(true)})
	}
	o.Unfollowed = append(o.Unfollowed, xp.RefTo(s.Unstructured))
}

// unrelated adds an object that has nothing to do with Crossplane, or that its control plane makes.
func (g *generator) unrelated(ns string) {
	if g.chance(20) {
		u := g.add(configUsage, RoleRebuilt, "", "")
		label(u, "crossplane.io/provider-config", "default")

		return
	}
	o := g.native(pick(g, widget, gadget, configMap, deployment), ns)
	if g.chance(50) {
		addOwner(o, metav1.OwnerReference{
			APIVersion: "foreign.io/v1", Kind: pick(g, "Widget", "Gadget"), Name: pick(g, "a", "x-1"), UID: g.unknownUID(), Controller: ptr.To(g.chance(50)),
		})
	}
}

// native adds an object of Kubernetes or of a foreign group.
func (g *generator) native(k Kind, ns string) *Object {
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
