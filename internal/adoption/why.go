package adoption

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

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
	if before, ok := strings.CutSuffix(text, next); ok {
		return strings.TrimRight(before, " ;:.") + code
	}
	command := commandAtEnd.FindString(next)
	before, ok := strings.CutSuffix(text, command)
	if command == "" || !ok {
		return why
	}
	end := max(strings.LastIndex(before, "; "), strings.LastIndex(before, ". "), 0)

	return before[:end] + code
}
