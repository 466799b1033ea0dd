package forest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// entangle ties knots into what has grown.
func (g *grower) entangle() {
	for _, o := range g.Objects {
		// One that carries the label of a tree of its own name composes itself, by all that can be
		// told.
		if o.Role != RoleXR || !g.chance(5) || o.parent == nil && o.GetLabels()[xp.LabelComposite] != "" {
			continue
		}
		root := o
		for root.parent != nil {
			root = root.parent
		}
		if g.knot(root, o) {
			root.Shape += " root of a cycle"
		}
	}
	for _, o := range g.Objects {
		if (o.Role == RoleXR || o.Role == RoleClaim || o.Role == RoleMR) && g.chance(6) {
			g.held(o)
		}
	}
}

// knot has an XR list the one at the top of its tree, which it may even control.
func (g *grower) knot(root, xr *Object) bool {
	if root.Kind.Namespaced != xr.Kind.Namespaced || root.GetDeletionTimestamp() != nil || root.Kind == claimKind {
		return false
	}
	path := place{}.of(xr.Kind, "resourceRefs")
	refs, _, _ := unstructured.NestedSlice(xr.Object, path...)
	set(xr, append(refs, refer(xp.RefTo(root.Unstructured), !xr.Kind.Namespaced)), path...)
	if root == xr || len(root.GetOwnerReferences()) > 0 || g.chance(40) {
		xr.Astray = append(xr.Astray, xp.RefTo(root.Unstructured))

		return true
	}
	label(root, xp.LabelComposite, root.GetName())
	annotate(root, xp.AnnotationResourceName, "r")
	own(root, ownerOf(xr.Unstructured, true))
	root.Composer, root.Controlled = xr, true
	xr.Brings = append(xr.Brings, root)

	return true
}

// held puts the hold of an earlier restore on an object that is backed up before it was adopted.
func (g *grower) held(o *Object) {
	if o.Own == o.Unstructured { // Of one with a forged mark it is known already.
		o.Own = o.DeepCopy()
	}
	h := adoption.Hold{Restore: "velero/earlier", Since: "2026-01-01T00:00:00Z"}
	if o.Role == RoleMR {
		h.Reason = adoption.ReasonSecret
	}
	if _, err := adoption.Put(o.Unstructured, h); err != nil {
		panic(err) // The test is wrong.
	}
}

// hostile grows what somebody who may write in a namespace makes to get at what is not theirs.
func (g *grower) hostile(ns string) {
	victim := one(g, g.Objects...)
	for range 5 { // An XR is the best to attack.
		if victim.Role != RoleXR {
			victim = one(g, g.Objects...)
		}
	}
	switch g.IntN(4) {
	case 0:
		c := g.add(claimKind, RoleClaim, ns, "")
		c.Shape = "hostile claim of " + xp.String(victim.Unstructured)
		c.SetFinalizers([]string{xp.FinalizerClaim})
		set(c, map[string]any{"name": "orders-0"}, "spec", "compositionRef")
		r := xp.RefTo(victim.Unstructured)
		set(c, refer(r, false), "spec", "resourceRef")
		c.Astray = append(c.Astray, r)
		g.forge(c)
	case 1:
		g.thief(ns)
	case 2:
		o := g.native(one(g, widget, configMap, deployment), ns)
		o.Shape = "says that " + xp.String(victim.Unstructured) + " composes it"
		label(o, xp.LabelComposite, victim.GetName())
		annotate(o, xp.AnnotationResourceName, "r")
		own(o, ownerOf(victim.Unstructured, true))
	default:
		s := g.add(secret, RoleSecret, ns, "")
		s.Shape = "says that " + xp.String(victim.Unstructured) + " publishes in it"
		set(s, xp.SecretTypeConnection, "type")
		own(s, ownerOf(victim.Unstructured, true))
	}
}

// thief grows an XR that lists what others compose.
func (g *grower) thief(ns string) {
	xr := g.add(modernXR, RoleXR, ns, "")
	xr.Shape = "hostile XR"
	c := one(g, g.onto[modernXR]...)
	set(xr, map[string]any{"name": c.composition.GetName()}, "spec", "crossplane", "compositionRef")
	xr.Brings = append(xr.Brings, g.xrds[modernXR], c.composition)
	var refs []any
	for range 1 + g.IntN(3) {
		v := one(g, g.Objects...)
		same := v.Kind == xr.Kind && v.GetName() == xr.GetName() // In its own namespace that is itself.
		if _, labelled := v.GetLabels()[xp.LabelComposite]; same || labelled && metav1.GetControllerOf(v) == nil {
			continue
		}
		label(xr, xp.LabelComposite, one(g, v.GetLabels()[xp.LabelComposite], v.GetName(), "x"))
		r := xp.RefTo(v.Unstructured)
		refs = append(refs, refer(r, true))
		r.Namespace = ns
		xr.Astray = append(xr.Astray, r)
	}
	set(xr, append([]any{}, refs...), "spec", "crossplane", "resourceRefs")
	g.forge(xr)
}

// forge gives an object marks that are not its to have.
func (g *grower) forge(o *Object) {
	if g.chance(30) {
		annotate(o, xp.AnnotationMustInclude, "true")
	}
	if g.chance(30) {
		annotate(o, xp.AnnotationMustRestore, "true")
	}
	if !g.chance(30) {
		return
	}
	annotate(o, adoption.AnnotationHold, one(g,
		"{", "null", `{"paused":"true"}`,
		`{"restore":"velero/x","pinned":true,"resourceRefs":[{"apiVersion":"cloud.example.org/v1beta1","kind":"Bucket","name":"a"}]}`,
	))
	o.Own = o.DeepCopy()
	if err := adoption.RemoveBackedUpHold(o.Own); err != nil {
		panic(err) // The test is wrong.
	}
}
