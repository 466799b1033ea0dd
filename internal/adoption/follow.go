package adoption

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkRevision waits for the revision that the XR is pinned to. If that revision is gone (for
// example because this Crossplane lacks its mode), it returns the name of the revision that the XR
// follows once its own settings are back. It does so only if that revision names every resource
// that the XR composes; else it returns "".
func (t *tree) checkRevision() (follows string) {
	if !t.hold.Pinned || t.xr.Revision() == "" || t.snapshot.Has(revisionRef(t.xr)) {
		return ""
	}
	next := ", and set its revision there"
	if c, ok := t.choice(); ok {
		next = ", and it continues"
		if c.selector != nil {
			next = ", gives that the labels " + labels.FormatLabels(c.selector) + next
		}
		if chosen := t.snapshot.chosen(c); chosen != nil {
			unnamed := t.unnamed(chosen)
			if len(unnamed) == 0 {
				t.checkPipeline(chosen)

				return chosen.GetName()
			}
			next += ". CompositionRevision " + chosen.GetName() + " does not name " + xp.SomeOf(unnamed) + ", which it composes"
		}
	}
	t.wait(false, reason.CompositionRevisionMissing.Messagef("CompositionRevision %s: it is not in the cluster. Restore it, or set another "+
		"compositionRevisionRef on "+
		`%s. If it was in mode Resources, which Crossplane v2 does not have, apply what "crossplane beta convert pipeline-composition" of v1.20 makes of its `+
		"Composition %s%s", t.xr.Revision(), xp.String(t.xr.Unstructured), t.xr.Composition(), next))

	return ""
}

// unnamed returns the XR's composed resources that the revision does not name, or names with
// another kind. Crossplane would delete these, and create others in their place.
func (t *tree) unnamed(revision *unstructured.Unstructured) []xp.Ref {
	named := xp.ComposedNames(revision)
	var unnamed []xp.Ref
	for _, r := range t.hold.Refs {
		u := t.snapshot.Get(r)
		if u == nil {
			continue // checkComposed waits for it.
		}
		gk, ok := named[xp.Annotation(u, xp.AnnotationResourceName)]
		if !ok || gk.Kind != "" && gk != u.GroupVersionKind().GroupKind() {
			unnamed = append(unnamed, r)
		}
	}

	return unnamed
}

// follow plans to remove the missing revision from the XR, so that Crossplane writes the newest one
// and manages that field. While the XR is pinned Crossplane ignores its selector (crossplane
// internal/controller/apiextensions/composite/api.go, getCompositionRevisionList), so then the
// revision is written. The claim, if it is held, gets it first: Crossplane copies the claim's
// revision to an XR that is pinned.
func (t *tree) follow(u *unstructured.Unstructured, revision string) {
	h, now := *t.hold, ""
	if t.selects() {
		now = revision
	}
	if claim, held := t.heldClaim(); claim != nil && xp.ClaimFrom(claim).Revision() != revision {
		u, h, now = claim, *held, revision
	}
	var ref any
	if now != "" {
		ref = map[string]any{"name": now}
	}
	h.Revision = now // The mark keeps the new name, so that this is not taken for a change by another writer.
	p := xp.Instance{Unstructured: u}.Field("compositionRevisionRef", ref)
	maps.Copy(p, patch(u, map[string]any{AnnotationHold: t.snapshot.key.mark(xp.RefTo(u), &h)}))
	t.change(u, p, "its revision is gone; have it follow the one that it would get, which names all that it composes")
}
