package printer

import (
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// A level is how much attention something needs. It is a CSS class of the page, too.
type level string

// Levels.
const (
	levelHealthy level = "well"
	levelWarning level = "warning"
	levelProblem level = "problem"
	levelPlain   level = "plain"
)

// levels has the level of each severity, action, state and result.
var levels = map[any]level{ //nolint:gochecknoglobals // It is a constant.
	report.Error: levelProblem, report.Warning: levelWarning,

	report.Refuse: levelProblem, report.Clone: levelProblem, report.Keep: levelWarning, report.Skip: levelWarning,
	report.Update: levelWarning, report.Exists: levelPlain, report.Create: levelPlain,

	report.Missing: levelProblem, report.Foreign: levelProblem, report.Held: levelWarning, report.Unread: levelWarning, report.Deleting: levelWarning,
	report.Alone: levelPlain, report.Adopted: levelHealthy,

	report.StillHeld: levelProblem, report.WouldWait: levelProblem, report.Unproven: levelProblem,
	report.LeftAlone: levelWarning, report.WouldForce: levelWarning,
	report.Waiting: levelProblem, report.Quiet: levelHealthy, report.WouldHold: levelHealthy,

	report.Released: levelHealthy, report.Forced: levelHealthy, report.WouldRelease: levelHealthy,
}

func levelOfReport(r *report.Report) level {
	switch {
	case r.Summary.Problems > 0:
		return levelProblem
	case r.Summary.Warnings > 0:
		return levelWarning
	default:
		return levelHealthy
	}
}

func (l level) colour() text.Color {
	return map[level]text.Color{levelProblem: text.FgRed, levelWarning: text.FgYellow, levelHealthy: text.FgGreen}[l]
}

// cell returns a cell with a text, in colour if that needs attention.
func (l level) cell(t string) cell {
	if l == levelProblem || l == levelWarning {
		return cell{text: t, colours: []text.Color{l.colour()}}
	}

	return plain(t)
}
