package printer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// summary comes last, where a user of a terminal looks first.
func (s *textReport) summary() string {
	var lines []string
	for _, r := range s.report.Restores {
		lines = append(lines, s.wrapped(restoreLine(r), ""))
	}
	if len(s.report.Trees) > 0 {
		lines = append(lines, s.wrapped(counts(s.report), ""))
	}
	what, next := verdict(s.report)
	if s.report.Kind == report.KindRelease || s.report.Kind == report.KindHold {
		what, next = releaseVerdict(s.report)
	}
	lines = append(lines, s.paint(s.wrapped(what, ""), levelOfReport(s.report).colour(), text.Bold))
	if next != "" {
		lines = append(lines, s.wrapped("Next: "+next, ""))
	}

	return strings.Join(lines, "\n")
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
		check := "--context"
		if r.Kind == report.KindInspection {
			check = "the backup's filters"
		}

		return "Nothing of Crossplane was found" + source + ".", "if there should be claims, XRs or MRs, check " + check + ", and --namespace if you gave it."
	default:
		return "No problems" + source + ".", ""
	}

	return what, advice(r)
}

func advice(r *report.Report) string {
	isRunning := !slices.ContainsFunc(r.Problems, func(p report.Problem) bool { return p.Severity == report.Error && p.Code != reason.Held })
	switch {
	case r.Summary.Problems == 0:
		return "a warning can be intended; each one shows what to check."
	case isRunning:
		return "the restore is running; each problem shows what it waits for. wait shows its progress."
	case r.Kind == report.KindInspection:
		return "follow the next step of each problem, from the first on, before you restore."
	default:
		return "follow the next step of each problem, from the first on, then validate again."
	}
}

// releaseVerdict returns the result of release or hold as a whole, and what to do.
func releaseVerdict(r *report.Report) (what, next string) {
	counts := map[report.Result]int{}
	var order []report.Result
	for _, release := range r.Releases {
		if counts[release.Result] == 0 {
			order = append(order, release.Result)
		}
		counts[release.Result]++
	}
	var parts []string
	for _, result := range order {
		parts = append(parts, fmt.Sprintf("%d %s", counts[result], result))
	}
	isHold, noun, again := r.Kind == report.KindHold, "hold", "release again."
	if isHold {
		noun, again = "object", "run the same again."
	}
	what = Counted(len(r.Releases), noun) + ": " + strings.Join(parts, ", ") + "."
	if len(r.Releases) == 0 {
		what = "Nothing is held, so there is nothing to release."
	}
	switch {
	case len(r.Releases) == 0 && !isHold:
		return what, unrestored(r.Restores)
	case r.Summary.Problems > 0:
		return what, "follow the next step of each problem above, from the first on, then " + again
	case counts[report.WouldRelease]+counts[report.WouldForce]+counts[report.WouldHold] > 0:
		return what, "run the same without --dry-run."
	case isHold:
		return what, "back up, and restore that in the other cluster. To go on here instead, make sure that no other cluster has adopted anything, then run: " +
			xp.NewCommand(xp.Program, "release").Word("-n", "NAMESPACE").String()
	default:
		return what, unrestored(r.Restores)
	}
}

// unrestored returns where to see what a failed Restore did not create: that has no hold.
func unrestored(restores []report.Restore) string {
	for _, r := range restores {
		if strings.HasSuffix(r.Phase, "Failed") { // This matches WaitingForPluginOperationsPartiallyFailed too.
			_, name, _ := strings.Cut(r.Name, "/")

			return `this report lacks what was not restored: see "` + xp.NewCommand("velero", "restore", "describe").On(name).String() +
				`", and restore again if anything is missing.`
		}
	}

	return ""
}

// Counted returns a number with what it counts, such as "1 hold" or "2 holds".
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}

	return fmt.Sprintf("%d %ss", n, what)
}

// timestamp returns a time in the format of logs.
func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// since returns the time since t in kubectl's format; "" if it is not known.
func (s *textReport) since(t *time.Time) string {
	if t == nil || s.report.Time.IsZero() {
		return ""
	}

	return duration.HumanDuration(s.report.Time.Sub(*t))
}
