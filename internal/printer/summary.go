package printer

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// summary returns the counts, the verdict and what to do. It comes last, where a user of a terminal
// looks first.
func (s *textReport) summary() string {
	var lines []string
	for _, r := range s.report.Restores {
		lines = append(lines, s.wrapped(restoreLine(r), ""))
	}
	if len(s.report.Trees) > 0 {
		lines = append(lines, s.wrapped(counts(s.report), ""))
	}
	what, next := conclusion(s.report)
	lines = append(lines, s.paint(s.wrapped(what, ""), levelOfReport(s.report).colour(), text.Bold))
	if next != "" {
		lines = append(lines, s.wrapped("Next: "+next, ""))
	}

	return strings.Join(lines, "\n")
}

// conclusion returns the verdict of a report of any kind, and what to do.
func conclusion(r *report.Report) (what, next string) {
	switch r.Kind {
	case report.KindRelease:
		return releaseVerdict(r)
	case report.KindHold:
		return holdVerdict(r)
	default:
		return verdict(r)
	}
}

func restoreLine(r report.Restore) string {
	line := "Restore " + r.Name + ": " + r.Phase
	if r.Backup != "" {
		line += ", of the backup " + r.Backup
	}
	if r.Started != nil {
		line += ", started " + timestamp(*r.Started)
	}
	if r.Completed != nil {
		line += ", completed " + timestamp(*r.Completed)
	}

	return line
}

func counts(r *report.Report) string {
	c := r.Summary
	line := fmt.Sprintf("%s, %s, %s", Counted(c.Claims, "claim"), Counted(c.XRs, "XR"), Counted(c.Composed, "composed resource"))
	if c.Composed > 0 {
		line += fmt.Sprintf(" (%d %s)", c.Adopted, stateName(r, report.Adopted))
	}
	line += ", " + Counted(c.Managed, "MR")
	if c.Held > 0 {
		line += fmt.Sprintf("; %d held", c.Held)
	}

	return line + "."
}

// verdict returns the overall result, and what to do.
func verdict(r *report.Report) (what, next string) {
	source := ""
	if r.Source != "" {
		source = " in " + r.Source
	}
	switch {
	case r.Summary.Problems > 0:
		what = Counted(r.Summary.Problems, "problem")
		if r.Summary.Warnings > 0 {
			what += " and " + Counted(r.Summary.Warnings, "warning")
		}
		what += source + "."
	case r.Summary.Warnings > 0:
		what = "No problems, " + Counted(r.Summary.Warnings, "warning") + source + "."
	case len(r.Trees) == 0:
		return "Nothing of Crossplane was found" + source + ".", empty(r)
	default:
		return "No problems" + source + ".", ""
	}

	return what, advice(r)
}

func empty(r *report.Report) string {
	if r.Kind == report.KindInspection {
		return "if there should be claims, XRs or MRs, check the backup's filters, and --namespace if you gave it."
	}

	return "if there should be claims, XRs or MRs, check --context, and --namespace if you gave it."
}

func advice(r *report.Report) string {
	held := 0
	for _, p := range r.Problems {
		if p.Severity == report.Error && p.Code == reason.Held {
			held++
		}
	}
	switch {
	case r.Summary.Problems == 0:
		return "a warning can be intended; each one shows what to check."
	case held == r.Summary.Problems:
		return "the restore is running; each problem shows what it waits for. wait shows its progress."
	case r.Kind == report.KindInspection:
		return "follow the next step of each problem, from the first on, before you restore."
	default:
		return "follow the next step of each problem, from the first on, then validate again."
	}
}

// Counted returns a number with what it counts, such as "1 hold" or "2 holds".
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}

	return number(n) + " " + what + "s"
}

func number(n int) string { return strconv.Itoa(n) }

// timestamp returns a time in the format of logs.
func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// ago returns a duration in kubectl's format.
func ago(d time.Duration) string { return duration.HumanDuration(d) }
