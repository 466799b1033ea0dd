package adoption

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// With manual release an object gets as far as it can without being released: it waits for what it
// needs, MRs with observe-first are observed, and Secrets get their controllers. Then a user
// releases it, and not the restore.
const (
	waitReady      = "%s: it waits for nothing but a user who releases it; run: %s"
	waitComposedXR = "%s: this composed XR stays held until a user releases it; run: %s"
	// reasonConsent is the reason of a hold that a user has agreed to release.
	reasonConsent = "a user has released it, and it is held until it is adopted. If that was interrupted, run: "
)

// ManualNext returns how a user releases the objects of a Restore with manual release.
func ManualNext(h *Hold) string {
	return "when it waits for nothing else, run: " + xp.ReleaseOf(h.Restore).String()
}

// AwaitsConsent reports whether the hold is lifted only after a user agrees, and returns the name
// of the step by which they agree.
func (h *Hold) AwaitsConsent() (step string, ok bool) {
	switch {
	case h.Quarantine:
		return "end its quarantine", true
	case h.ByHand:
		return "release it, as a user has agreed", true
	default:
		return "", false
	}
}

// explainConsent makes the Reason say that the hold waits for a user, if it does. In quarantine one
// consent is enough: it ends the quarantine and allows the release.
func (h *Hold) explainConsent() {
	h.ByHand = h.ByHand && !h.ByCommand && !h.Quarantine
	switch {
	case h.ByCommand:
		h.Reason = reason.HeldByCommand.Messagef("%s%s", reasonByCommand, QuarantineNext(h)).String()
	case h.Quarantine:
		h.Reason = reason.Quarantined.Messagef("%s%s", reasonQuarantine, QuarantineNext(h)).String()
	case h.ByHand:
		h.Reason = reason.AwaitingUser.Messagef("%s; a user releases it, as the setting release of the Restore asks: %s", h.Reason, ManualNext(h)).String()
	}
}

// isReadyForRelease reports whether an XR waits for nothing any more, not even for a user. It plans
// the changes to the XR's connection secret that must come first.
func (t *tree) isReadyForRelease(u *unstructured.Unstructured) bool {
	return len(t.plan.Waiting) == 0 && t.plan.Failed.IsZero() && !t.takeSecret(u) && !t.awaitUser(xp.RefTo(u), t.hold)
}

// awaitUser waits for a user and returns true, if a user is to release what r names.
func (t *tree) awaitUser(r xp.Ref, h *Hold) bool {
	if h.ByHand {
		t.waitForUser(waitReady, r, h)
	}

	return h.ByHand
}

func (t *tree) waitForUser(format string, r xp.Ref, h *Hold) {
	t.waitFor(r, false, reason.AwaitingUser.Messagef(format, r, xp.ReleaseOf(h.Restore)))
	t.userWaits++
}

// waitsForUserOnly returns the Plan with Ready set to whether it waits only for a user.
func (t *tree) waitsForUserOnly(p Plan) Plan {
	p.Ready = t.userWaits > 0 && t.userWaits == len(p.Waiting) && p.Patch == nil && len(p.Also) == 0 && p.Failed.IsZero()

	return p
}

// planManual returns the Plan for an object that waits for nothing, or only for a user; p is the
// Plan if it waits for nothing.
func (s *Snapshot) planManual(u *unstructured.Unstructured, h *Hold, p Plan) Plan {
	t := tree{snapshot: s}
	if t.awaitUser(xp.RefTo(u), h) {
		return t.waitsForUserOnly(t.plan)
	}

	return p
}

// Consent returns the patch of the mark which says that a user wants u adopted: it ends a
// quarantine or the wait for manual release. The hold stays on until then. ok is false if it awaits
// no consent.
func (k Key) Consent(u *unstructured.Unstructured) (p map[string]any, ok bool) {
	mark, ok := k.Consented(u)
	if !ok {
		return nil, false
	}

	return patch(u, map[string]any{AnnotationHold: mark}), true
}

// Consent changes the observed mark of what r names as if a user had agreed to its adoption. It
// does nothing if the hold awaits no consent.
func (s *Snapshot) Consent(r xp.Ref) {
	u := s.Get(r)
	if u == nil {
		return
	}
	mark, ok := s.key.Consented(u)
	if !ok {
		return
	}
	u = u.DeepCopy()
	xp.Annotate(u, AnnotationHold, mark)
	s.keep(r.ID(), u, true)
}

// HowToRelease returns the next step for a hold that release lifts only on request, or never; ""
// for any other hold.
func HowToRelease(u *unstructured.Unstructured, h *Hold) string {
	switch {
	case h.Clone != "":
		return "you can delete it, which keeps the external resources; if it is no copy, release it with --force"
	case h.Quarantine:
		return QuarantineNext(h)
	case h.ByHand:
		return ManualNext(h)
	case xp.IsSchedule(u):
		return "a released one starts Operations; to release it, run: " + xp.ReleaseCommand(xp.RefTo(u)).String()
	default:
		return ""
	}
}

// Why returns the reason of the hold of u without the next step, which HowToRelease returns.
func Why(u *unstructured.Unstructured, h *Hold) string {
	return WithoutNext(h.Reason, HowToRelease(u, h))
}

// codeAtEnd matches the code of a message, and commandAtEnd the command of a next step.
var (
	codeAtEnd    = regexp.MustCompile(`( \[[A-Za-z]+\])?$`)
	commandAtEnd = regexp.MustCompile(`run: ` + regexp.QuoteMeta(xp.Program) + ` .*$`)
)

// WithoutNext returns a reason without the next step at its end, for where the step is printed
// beside it. A mark and an Event have both in one text, since they have nothing else.
func WithoutNext(why, next string) string {
	if next == "" {
		return why
	}
	text, code := why, codeAtEnd.FindString(why)
	text = strings.TrimSuffix(text, code)
	before, ok := strings.CutSuffix(text, next)
	if command := commandAtEnd.FindString(next); !ok && command != "" {
		if before, ok = strings.CutSuffix(text, command); ok {
			before = before[:max(strings.LastIndex(before, "; "), strings.LastIndex(before, ". "), 0)]
		}
	}
	if !ok {
		return why
	}

	return strings.TrimRight(before, " ;:.") + code
}
