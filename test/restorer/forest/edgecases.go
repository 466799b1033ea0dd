package forest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// addEdgeCases adds cycles and earlier holds.
func (g *generator) addEdgeCases() {
	for _, o := range g.Objects {
		// An XR with the label of a tree of its own name composes itself, as far as anything can
		// show.
		if o.Role != RoleXR || !g.chance(5) || o.parent == nil && o.GetLabels()[xp.LabelComposite] != "" {
			continue
		}
		root := o
		for root.parent != nil {
			root = root.parent
		}
		if g.cycle(root, o) {
			root.Shape += " root of a cycle"
		}
	}
	for _, o := range g.Objects {
		if (o.Role == RoleXR || o.Role == RoleClaim || o.Role == RoleMR) && g.chance(6) {
			g.holdEarlier(o)
		}
	}
}

// cycle makes an XR list the root of its tree, and may make it the root's controller.
func (g *generator) cycle(root, xr *Object) bool {
	if root.Kind.Namespaced != xr.Kind.Namespaced || root.GetDeletionTimestamp() != nil || root.Kind == claimKind {
		return false
	}
	path := position{}.path(xr.Kind, "resourceRefs")
	refs, _, _ := unstructured.NestedSlice(xr.Object, path...)
	set(xr, append(refs, refFields(xp.RefTo(root.Unstructured), !xr.Kind.Namespaced)), path...)
	if root == xr || len(root.GetOwnerReferences()) > 0 || g.chance(40) {
		xr.Unfollowed = append(xr.Unfollowed, xp.RefTo(root.Unstructured))

		return true
	}
	label(root, xp.LabelComposite, root.GetName())
	annotate(root, xp.AnnotationResourceName, "r")
	addOwner(root, ownerOf(xr.Unstructured, true))
	root.Composer, root.Controlled = xr, true
	xr.Needs = append(xr.Needs, root)

	return true
}

// holdEarlier holds an object for an earlier restore, which the backup interrupts.
func (g *generator) holdEarlier(o *Object) {
	if o.Own == o.Unstructured { // One with a forged mark has its own copy already.
		o.Own = o.DeepCopy()
	}
	h := hold.Hold{Restore: "velero/earlier", Since: "2026-01-01T00:00:00Z"}
	if o.Role == RoleMR {
		h.Reason = hold.ReasonSecret
	}
	if _, err := hold.Put(o.Unstructured, h); err != nil {
		panic(err) // The test is wrong.
	}
}

// hostile adds what a tenant creates to get objects of others.
func (g *generator) hostile(ns string) {
	victim := pick(g, g.Objects...)
	for range 5 { // An XR is the best target.
		if victim.Role != RoleXR {
			victim = pick(g, g.Objects...)
		}
	}
	switch g.IntN(4) {
	case 0:
		c := g.add(claimKind, RoleClaim, ns, "")
		c.Shape = "hostile claim of " + xp.String(victim.Unstructured)
		c.SetFinalizers([]string{xp.FinalizerClaim})
		set(c, map[string]any{"name": "orders-0"}, "spec", "compositionRef")
		r := xp.RefTo(victim.Unstructured)
		set(c, refFields(r, false), "spec", "resourceRef")
		c.Unfollowed = append(c.Unfollowed, r)
		g.forge(c)
	case 1:
		g.hostileXR(ns)
	case 2:
		o := g.native(pick(g, widget, configMap, deployment), ns)
		o.Shape = "says that " + xp.String(victim.Unstructured) + " composes it"
		label(o, xp.LabelComposite, victim.GetName())
		annotate(o, xp.AnnotationResourceName, "r")
		addOwner(o, ownerOf(victim.Unstructured, true))
	default:
		s := g.add(secret, RoleSecret, ns, "")
		s.Shape = "says that " + xp.String(victim.Unstructured) + " publishes in it"
		set(s, xp.SecretTypeConnection, "type")
		addOwner(s, ownerOf(victim.Unstructured, true))
	}
}

// hostileXR adds an XR that lists resources that others compose.
func (g *generator) hostileXR(ns string) {
	xr := g.add(modernXR, RoleXR, ns, "")
	xr.Shape = "hostile XR"
	c := pick(g, g.compositions[modernXR]...)
	set(xr, map[string]any{"name": c.composition.GetName()}, "spec", "crossplane", "compositionRef")
	xr.Needs = append(xr.Needs, g.xrds[modernXR], c.composition)
	var refs []any
	for range 1 + g.IntN(3) {
		v := pick(g, g.Objects...)
		same := v.Kind == xr.Kind && v.GetName() == xr.GetName() // In its own namespace that is the XR itself.
		if _, labelled := v.GetLabels()[xp.LabelComposite]; same || labelled && metav1.GetControllerOf(v) == nil {
			continue
		}
		label(xr, xp.LabelComposite, pick(g, v.GetLabels()[xp.LabelComposite], v.GetName(), "x"))
		r := xp.RefTo(v.Unstructured)
		refs = append(refs, refFields(r, true))
		r.Namespace = ns
		xr.Unfollowed = append(xr.Unfollowed, r)
	}
	set(xr, append([]any{}, refs...), "spec", "crossplane", "resourceRefs")
	g.forge(xr)
}

// forge adds annotations that a tenant must not set.
func (g *generator) forge(o *Object) {
	if g.chance(30) {
		annotate(o, xp.AnnotationMustInclude, "true")
	}
	if g.chance(30) {
		annotate(o, xp.AnnotationMustRestore, "true")
	}
	if !g.chance(30) {
		return
	}
	annotate(o, hold.Annotation, pick(g,
		"{", "null", `{"paused":"true"}`,
		`{"restore":"velero/x","pinned":true,"resourceRefs":[{"apiVersion":"cloud.example.org/v1beta1","kind":"Bucket","name":"a"}]}`,
	))
	o.Own = o.DeepCopy()
	if err := hold.RemoveBackedUpHold(o.Own); err != nil {
		panic(err) // The test is wrong.
	}
}
