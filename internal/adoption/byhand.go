package adoption

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// What is released by hand goes as far as it can without being let go: what it needs is waited for,
// MRs that are to be observed first are observed, and Secrets get their controllers. Then a person
// lets it go, and not the restore.
const (
	waitReady = "%s: all that it needs is there, and it stays held until a person lets it go; run: %s"
	waitBelow = "%s: this composed XR stays held until a person lets it go; run: %s"
	// reasonLetGo is why something is held that a person has let go.
	reasonLetGo = "a person has let it go, to have it adopted. If nothing works on that any more, run: "
)

// byHand is the reason of a hold that a person lifts.
func byHand(h *Hold, reason string) string {
	return strings.TrimSuffix(strings.TrimSuffix(reason, lifted), ". ") + ". A person lifts the hold, as the setting release of the Restore says: " + byHandText(h)
}

func byHandText(h *Hold) string {
	return "when it says that all that it needs is there, run: " + xp.ReleaseOf(h.Restore).String()
}

// AwaitsConsent reports whether nothing is let go until a person says so, and which step it is to
// say so.
func (h *Hold) AwaitsConsent() (step string, ok bool) {
	switch {
	case h.Quarantine:
		return "end its quarantine", true
	case h.ByHand:
		return "let it go on, as a person has said", true
	default:
		return "", false
	}
}

// awaitConsentOf has a hold wait for a person, if the given one says so. What is in quarantine is
// let go by the same word that ends that.
func (h *Hold) awaitConsentOf(of Hold) {
	switch {
	case h.Quarantine:
		h.Reason = reasonQuarantine + quarantineNext(h)
	case of.ByHand:
		h.ByHand, h.Reason = true, byHand(h, h.Reason)
	}
}

// isReadyForRelease reports whether an XR waits for nothing any more, nor for a person.
func (t *tree) isReadyForRelease(u *unstructured.Unstructured) bool {
	return len(t.plan.Waiting) == 0 && t.plan.Failed == "" && !t.takeSecret(u) && !t.takeStored(u, t.hold) &&
		!t.awaitPerson(xp.RefTo(u), t.hold)
}

// awaitPerson waits for a person, if it is up to one to let go what r names, and reports whether it
// is.
func (t *tree) awaitPerson(r xp.Ref, h *Hold) bool {
	if h.ByHand {
		t.waitForPerson(waitReady, r, h)
	}

	return h.ByHand
}

// waitForPerson waits for a person.
func (t *tree) waitForPerson(format string, r xp.Ref, h *Hold) {
	t.wait(false, format, r, xp.ReleaseOf(h.Restore))
	t.byHand++
}

// waitsForPersonOnly says of a Plan whether it waits for nothing but a person.
func (t *tree) waitsForPersonOnly(p Plan) Plan {
	p.Ready = t.byHand > 0 && t.byHand == len(p.Waiting) && p.Patch == nil && len(p.Also) == 0 && p.Failed == ""

	return p
}

// planByHand is the Plan for something that waits for nothing but, maybe, a person.
func (s *Snapshot) planByHand(u *unstructured.Unstructured, h *Hold, p Plan) Plan {
	t := tree{snapshot: s}
	if t.awaitPerson(xp.RefTo(u), h) {
		return t.waitsForPersonOnly(t.plan)
	}

	return p
}

// Consent is the patch that says that a person wants u adopted, which ends its quarantine, or that
// it waits for one. It stays held until it is adopted. ok is false if nothing waits for that.
func (k Key) Consent(u *unstructured.Unstructured) (p map[string]any, ok bool) {
	mark, ok := k.consented(u)
	if !ok {
		return nil, false
	}

	return patch(u, map[string]any{AnnotationHold: mark}), true
}

// Consent has what r names be observed as if a person had said that they want it adopted.
func (s *Snapshot) Consent(r xp.Ref) {
	u := s.Get(r)
	if u == nil {
		return
	}
	mark, ok := s.key.consented(u)
	if !ok {
		return
	}
	u = u.DeepCopy()
	xp.Annotate(u, AnnotationHold, mark)
	delete(s.observedObjects, r.ID())
	s.keep(r.ID(), u, true)
}
