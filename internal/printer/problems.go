package printer

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A finding is a problem, with all objects that it is about.
type finding struct {
	report.Problem

	objects []xp.Ref
}

// stamps matches times: holds with one cause are one finding although they began one by one.
var stamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// mostSteps limits the findings that differ only in their next step: an XR can list any kinds.
const mostSteps = 100

// findings returns the problems in their order. Problems that differ only in the object or in times
// are one finding. Beyond mostSteps, so are those that differ only in their next step.
func findings(problems []report.Problem) []*finding {
	type cause struct{ code, severity, reason string }
	type kind struct {
		cause

		next string
	}
	var all []*finding
	same, steps := map[kind]*finding{}, map[cause]int{}
	for _, p := range problems {
		k := kind{cause{string(p.Code), string(p.Severity), stamps.ReplaceAllString(p.Reason, "")}, p.Next}
		if same[k] == nil && steps[k.cause] >= mostSteps {
			k.next, p.Next = otherSteps, otherSteps
		}
		if same[k] == nil {
			steps[k.cause]++
			same[k] = &finding{Problem: p}
			all = append(all, same[k])
		}
		same[k].objects = append(same[k].objects, p.Object)
	}

	return all
}

const otherSteps = "the same as above with their own names; -o json has each"

// mostShown limits the objects of a finding on a terminal. mostListed is the limit elsewhere.
const (
	mostShown  = 5
	mostListed = 100
)

// shown returns the objects of a finding to print, and the number of the others.
func (s *textReport) shown(f *finding) (objects []xp.Ref, more int) {
	limit := mostListed
	if !s.all && s.Width > 0 {
		limit = mostShown
	}
	limit = min(limit, len(f.objects))

	return f.objects[:limit], len(f.objects) - limit
}

func (s *textReport) named(f *finding) string {
	shown, more := s.shown(f)
	var all []string
	for _, o := range shown {
		all = append(all, o.String())
	}
	names := strings.Join(all, ", ")
	if more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}

	return names
}

func (s *textReport) problems() string {
	var blocks []string
	for _, f := range findings(s.report.Problems) {
		blocks = append(blocks, s.block(f, strings.ToUpper(string(f.Severity))+" "+string(f.Code), ": ", levels[f.Severity]))
	}

	return strings.Join(blocks, "\n\n")
}

// block returns a finding: a coloured head with the objects, the reason, and the next step.
func (s *textReport) block(f *finding, head, separator string, l level) string {
	first := s.paint(head, l.colour(), text.Bold) + strings.TrimPrefix(s.wrapped(head+separator+s.named(f), ""), head)

	return strings.Join([]string{first, s.wrapped(f.Reason, "  "), s.next(f.Next)}, "\n")
}

// commandAtEnd matches a command at the end of a next step.
var commandAtEnd = regexp.MustCompile(`: ((?:kubectl|velero|` + regexp.QuoteMeta(xp.Program) + `) .*)$`)

// next returns a next step. On a terminal a command at its end gets a line to copy, never wrapped.
func (s *textReport) next(step string) string {
	at := commandAtEnd.FindStringSubmatchIndex(step)
	if s.Width == 0 || at == nil {
		return s.wrapped("Next: "+step, "  ")
	}

	return s.wrapped("Next: "+step[:at[0]+1], "  ") + "\n    " + step[at[2]:at[3]]
}

// hanging wraps a text and indents all lines but the first by the width of its first bytes.
func (s *textReport) hanging(t string, first int) string {
	columns := text.StringWidthWithoutEscSequences(t[:first])

	return t[:first] + s.wrapped(t[first:], strings.Repeat(" ", columns))[columns:]
}

// wrapped wraps a text to the terminal's width and indents each line.
func (s *textReport) wrapped(t, indent string) string {
	if s.Width > 0 {
		t = text.WrapSoft(t, max(s.Width-len(indent), 2*minColumn))
	}

	return indent + strings.ReplaceAll(trimmed(t), "\n", "\n"+indent)
}
