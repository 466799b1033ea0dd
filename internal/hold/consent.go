package hold

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An object in quarantine is held, and nothing is done about it until a user ends the quarantine.
// The cluster that was backed up may be running and manage the same external resources, which can't
// be detected from this cluster.
const (
	reasonQuarantine = "restored into quarantine, as the setting hold of the Restore asks: nothing reconciles it until a user releases it; "
	reasonEnded      = "a user has ended its quarantine, and it is held until it is adopted. If that was interrupted, run: "
	// reasonConsent is the reason of a hold that a user has agreed to release.
	reasonConsent = "a user has released it, and it is held until it is adopted. If that was interrupted, run: "
)

// ManualNext returns how a user releases the objects of a Restore with manual release.
func ManualNext(h *Hold) string {
	return "when it waits for nothing else, run: " + xp.ReleaseOf(h.Restore).String()
}

// QuarantineNext returns how to end the quarantine of the objects of a Restore, or of the command
// hold.
func QuarantineNext(h *Hold) string {
	if h.ByCommand {
		return "to go on in this cluster, make sure that no other cluster has adopted it, then run: " +
			xp.NewCommand(xp.Program, "release").Word("-n", "NAMESPACE").String()
	}

	return "make sure that no other cluster manages the same external resources, then run: " + xp.ReleaseOf(h.Restore).String()
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

// Consent returns the patch of the mark which says that a user wants u adopted: it ends a
// quarantine or the wait for manual release. The hold stays on until then. ok is false if it awaits
// no consent.
func (k Key) Consent(u *unstructured.Unstructured) (p map[string]any, ok bool) {
	mark, ok := k.Consented(u)
	if !ok {
		return nil, false
	}

	return patch(u, map[string]any{Annotation: mark}), true
}

// Consented returns the mark of u after a user's consent; ok is false if it awaits none.
func (k Key) Consented(u *unstructured.Unstructured) (mark string, ok bool) {
	h, err := k.HoldOf(u)
	if err != nil || h == nil {
		return "", false
	}
	switch {
	case h.Quarantine:
		h.Reason = reason.AwaitingAdoption.Messagef("%s%s", reasonEnded, xp.ReleaseCommand(xp.RefTo(u))).String()
	case h.ByHand:
		h.Reason = reason.AwaitingAdoption.Messagef("%s%s", reasonConsent, xp.ReleaseCommand(xp.RefTo(u))).String()
	default:
		return "", false
	}
	h.Quarantine, h.ByHand = false, false

	return k.mark(xp.RefTo(u), h), true
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
