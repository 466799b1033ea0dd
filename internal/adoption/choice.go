package adoption

import (
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
	if r, ok := xr.ClaimRef(); ok {
		if claim := s.Get(r); claim != nil && xp.Bound(xp.ClaimFrom(claim), xr) {
			if selector := xp.ClaimFrom(claim).RevisionSelector(); selector != nil {
				return selector
			}
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
	for _, u := range s.platform.revisions[c.composition] {
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
	return t.snapshot.choiceOf(t.xr, t.following(t.hold).policyOf(t.xr.Unstructured))
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
