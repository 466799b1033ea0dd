package printer

import (
	"regexp"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A finding is what is wrong with one object, or in the same words with several.
type finding struct {
	report.Problem

	objects []xp.Ref
}

// stamps are times in reasons. Holds that wait for one thing are one finding, though a restore has
// put them on one after the other.
var stamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// mostSteps is how many findings differ in nothing but their next step. One XR can list thousands
// of objects of as many kinds.
const mostSteps = 100

// findings returns the problems of a report in their order, those that differ only in their object,
// or in when it was held, as one. Where very many differ only in their next step, the last ones are
// one too.
func findings(problems []report.Problem) []*finding {
	var all []*finding
	same, steps := map[[4]string]*finding{}, map[[3]string]int{}
	for _, p := range problems {
		kind := [...]string{string(p.Code), string(p.Severity), stamps.ReplaceAllString(p.Reason, "")}
		key := [...]string{kind[0], kind[1], kind[2], p.Next}
		if same[key] == nil && steps[kind] >= mostSteps {
			key[3] = otherSteps
			p.Next = otherSteps
		}
		if f := same[key]; f != nil {
			f.objects = append(f.objects, p.Object)

			continue
		}
		steps[kind]++
		f := &finding{Problem: p, objects: []xp.Ref{p.Object}}
		same[key] = f
		all = append(all, f)
	}

	return all
}

const otherSteps = "the same as for those above, with their own names; -o json says it of each"

// most is how many objects of one finding are named on a terminal, and mostListed elsewhere.
const (
	most       = 5
	mostListed = 100
)

// shown returns the objects of a finding that are named, and of how many more there are.
func (s *textReport) shown(f *finding) (objects []xp.Ref, more int) {
	limit := mostListed
	if !s.all && s.Width > 0 {
		limit = most
	}
	limit = min(limit, len(f.objects))

	return f.objects[:limit], len(f.objects) - limit
}

// named returns the objects of a finding.
func (s *textReport) named(f *finding) string {
	shown, more := s.shown(f)
	rest := ""
	if more > 0 {
		rest = " and " + number(more) + " more"
	}
	var all []string
	for _, o := range shown {
		all = append(all, o.String())
	}

	return strings.Join(all, ", ") + rest
}

func (s *textReport) problems() string {
	all := findings(s.report.Problems)
	blocks := make([]string, 0, len(all))
	for _, f := range all {
		c := colourOf(f.Severity)
		head := strings.ToUpper(string(f.Severity)) + " " + string(f.Code)
		blocks = append(blocks, strings.Join([]string{
			s.paint(head, c, text.Bold) + strings.TrimPrefix(s.wrapped(head+": "+s.named(f), ""), head),
			s.wrapped(f.Reason, "  "),
			s.next(f.Next),
		}, "\n"))
	}

	return strings.Join(blocks, "\n\n")
}

func colourOf(severity report.Severity) text.Color {
	if severity == report.Grave {
		return text.FgRed
	}

	return text.FgYellow
}

// commandAtEnd is what a next step has in its end that can be copied.
var commandAtEnd = regexp.MustCompile(`: ((?:kubectl|velero|` + regexp.QuoteMeta(xp.Program) + `) .*)$`)

// next returns a next step. On a terminal a command in its end has a line of its own, however long
// that is: what is broken into lines can't be copied.
func (s *textReport) next(step string) string {
	at := commandAtEnd.FindStringSubmatchIndex(step)
	if s.Width == 0 || at == nil {
		return s.wrapped("Next: "+step, "  ")
	}

	return s.wrapped("Next: "+step[:at[0]+1], "  ") + "\n    " + step[at[2]:at[3]]
}

// hanging returns a text in lines as wide as the terminal. All but the first are indented as far as
// the first bytes of that reach.
func (s *textReport) hanging(t string, first int) string {
	columns := text.StringWidthWithoutEscSequences(t[:first])

	return t[:first] + s.wrapped(t[first:], strings.Repeat(" ", columns))[columns:]
}

// wrapped returns a text in lines as wide as the terminal, each with the indent.
func (s *textReport) wrapped(t, indent string) string {
	if s.Width > 0 {
		t = text.WrapSoft(t, max(s.Width-len(indent), 2*shortest))
	}

	return indent + strings.ReplaceAll(trimmed(t), "\n", "\n"+indent)
}
