package adoption

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A choice is how Crossplane chooses the CompositionRevision of an XR that is not on Manual
// (crossplane internal/controller/apiextensions/composite/api.go).
type choice struct {
	composition string
	// selector has the labels of the revision; nil for any.
	selector map[string]string
}

// String names the revisions to choose from.
func (c choice) String() string {
	if c.selector == nil {
		return "a revision of Composition " + c.composition
	}

	return "a revision of Composition " + c.composition + " with the labels " + labels.FormatLabels(c.selector)
}

// choiceOf returns how Crossplane chooses the revision of xr once it has the update policy, nil for
// none; ok is false if the XR names its revision.
func (s *Snapshot) choiceOf(xr xp.Composite, policy *string) (c choice, ok bool) {
	c = choice{composition: xr.Composition(), selector: s.revisionSelector(xr)}
	byDefault := xp.UpdateAutomatic
	if xrd := s.definitionOf(xr.GroupVersionKind().GroupKind()); xrd != nil {
		byDefault = xp.DefaultUpdatePolicy(xrd)
		if enforced := xp.EnforcedComposition(xrd); enforced != "" {
			c.composition = enforced
		}
	}
	if policy == nil {
		policy = &byDefault
	}
	if *policy != xp.UpdateAutomatic {
		c.selector = nil // It counts only with an explicit Automatic.
	}

	return c, *policy != xp.UpdateManual
}

// revisionSelector returns the labels by which an XR selects its revision. Crossplane copies those
// of its claim to it.
func (s *Snapshot) revisionSelector(xr xp.Composite) map[string]string {
	if claim := s.claimOf(xr); claim != nil {
		if selector := xp.ClaimFrom(claim).RevisionSelector(); selector != nil {
			return selector
		}
	}

	return xr.RevisionSelector()
}

// chosen returns the revision that Crossplane chooses: the one with the highest number, from 1 on,
// of those that the Composition controls (crossplane apis/apiextensions/v1, LatestRevision); nil if
// none was observed.
func (s *Snapshot) chosen(c choice) *unstructured.Unstructured {
	var latest *unstructured.Unstructured
	highest := int64(0)
	for _, u := range s.shared[xp.ID{Kind: xp.KindRevision.Kind, Name: c.composition}] {
		if _, ok := xp.Controller(u); !ok || !labels.SelectorFromSet(c.selector).Matches(labels.Set(u.GetLabels())) {
			continue
		}
		if n, _, _ := unstructured.NestedInt64(u.Object, "spec", "revision"); n > highest {
			latest, highest = u, n
		}
	}

	return latest
}

// choice is choiceOf for the XR as it is after its release.
func (t *tree) choice() (choice, bool) {
	return t.snapshot.choiceOf(t.xr, t.following(t.hold).PolicyOf(t.xr.Unstructured))
}

// checkChoice keeps an adopted XR on its revision until Crossplane has one to choose for it. Without
// one Crossplane does not reconcile an XR any more ("no compatible CompositionRevisions found",
// "cannot get Composition").
func (t *tree) checkChoice() {
	c, ok := t.choice()
	if !ok || !t.hold.Pinned || t.xr.Revision() == "" || t.hold.Failing != "" || t.hasChoice(c) {
		return
	}
	next := "Apply that Composition"
	if c.selector != nil {
		next += " with these labels, or change the compositionRevisionSelector"
		if claim, bound := t.xr.ClaimRef(); bound {
			next += " of " + claim.String()
		}
	}
	t.wait(false, reason.NoRevisionToFollow.Messagef("%s: it stays on CompositionRevision %s, because it is to follow %s, and the cluster has none. %s",
		xp.String(t.xr.Unstructured), t.xr.Revision(), c, next))
}

// hasChoice reports whether Crossplane has a revision to choose. If the XR can follow any, it is
// enough that its own has its Composition: Crossplane makes one of what that is now.
func (t *tree) hasChoice(c choice) bool {
	if own := t.snapshot.Get(revisionRef(t.xr)); c.selector == nil && own != nil && xp.Label(own, xp.LabelCompositionName) == c.composition {
		_, controlled := xp.Controller(own)

		return controlled
	}

	return c.selector == nil || t.snapshot.chosen(c) != nil
}

// selects reports whether the XR has labels by which Crossplane selects its revision, or gets some if
// it names no revision.
func (t *tree) selects() bool {
	if t.snapshot.revisionSelector(t.xr) != nil {
		return true
	}
	xrd := t.snapshot.definitionOf(t.xr.GroupVersionKind().GroupKind())

	return xrd != nil && xp.HasDefaultRevisionSelector(xrd)
}

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
		`compositionRevisionRef on %s. If it was in mode Resources, which Crossplane v2 does not have, apply what "crossplane beta convert pipeline-composition" `+
		"of v1.20 makes of its Composition %s%s", t.xr.Revision(), xp.String(t.xr.Unstructured), t.xr.Composition(), next))

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
	t.plan.Change = t.snapshot.rewriteMark(u, &h, "its revision is gone; have it follow the one that it would get, which names all that it composes")
	maps.Copy(t.plan.Patch, xp.Instance{Unstructured: u}.Field("compositionRevisionRef", ref))
}
