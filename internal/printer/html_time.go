package printer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// A timing is how long a restore or what it restored took.
type timing struct {
	Name, About                  string
	Began, Held, Unpaused, Ended *stamp
	Took, Level, From, Width     string
	began, ended                 time.Time
}

// timingsOf returns when each restore began and ended, and each XR and claim that is held, or is
// younger than the first restore; and what the bars are drawn over.
func timingsOf(r *report.Report) ([]timing, string) {
	var all, resources []timing
	var first time.Time
	for _, restore := range r.Restores {
		if restore.Started == nil {
			continue
		}
		if first.IsZero() || restore.Started.Before(first) {
			first = *restore.Started
		}
		t := timing{
			Name: restore.Name, About: "Restore, " + restore.Phase, Level: levelOfPhase(restore.Phase),
			Began: stampOf(restore.Started), Ended: stampOf(restore.Completed),
		}
		all = append(all, t.between(restore.Started, restore.Completed, r.Time))
	}
	if r.Kind != report.KindValidation {
		return all, draw(all)
	}
	walk(r.Trees, func(n *report.Node) {
		isRoot := n.Role == report.RoleClaim || n.Role == report.RoleComposite
		isNew := !first.IsZero() && n.Created != nil && !n.Created.Before(first.Truncate(time.Second))
		if n.Hold != nil || isRoot && isNew {
			resources = append(resources, timingOf(n, r)...)
		}
	})
	slices.SortStableFunc(resources, func(a, b timing) int { return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.Name, b.Name)) })
	all = append(all, resources...)

	return all, draw(all)
}

// timingOf returns how long it took until a resource was Ready, or how long it has been held;
// nothing if it does not say when it began.
func timingOf(n *report.Node, r *report.Report) []timing {
	t := timing{Name: n.String(), About: word(r, n.State), Began: stampOf(n.Created), Level: levelHealthy}
	began, ended := n.Created, (*time.Time)(nil)
	switch {
	case n.Hold != nil:
		t.Held, t.Unpaused, t.Level = stampOf(n.Hold.Since), stampOf(n.Hold.Unpaused), levelWarning
		if began == nil {
			began = n.Hold.Since
		}
	case n.Ready != nil && n.Ready.Status == "True":
		ended = n.Ready.Since
		t.Ended, t.About = stampOf(ended), t.About+", Ready"
	}
	if began == nil {
		return nil
	}

	return []timing{t.between(began, ended, r.Time)}
}

// between sets when it began and ended; what has not ended goes on until now.
func (t timing) between(began, ended *time.Time, now time.Time) timing {
	t.began, t.ended = *began, now
	if ended != nil && !ended.Before(*began) {
		t.ended = *ended
	}
	if t.ended.Before(t.began) {
		t.ended = t.began
	}
	t.Took = ago(t.ended.Sub(t.began))
	if t.Ended == nil {
		t.Took += " so far"
	}

	return t
}

// draw gives each timing its bar. It returns what the whole width is.
func draw(all []timing) string {
	if len(all) == 0 {
		return ""
	}
	first, last := all[0].began, all[0].ended
	for _, t := range all {
		if t.began.Before(first) {
			first = t.began
		}
		if t.ended.After(last) {
			last = t.ended
		}
	}
	whole := max(last.Sub(first), time.Second)
	const hundred = 100.
	percent := func(d time.Duration) float64 { return hundred * float64(d) / float64(whole) }
	for n, t := range all {
		// A bar that is too short to be seen says nothing.
		width := max(percent(t.ended.Sub(t.began)), 1)
		all[n].From = strconv.FormatFloat(min(percent(t.began.Sub(first)), hundred-width), 'f', 1, 64)
		all[n].Width = strconv.FormatFloat(width, 'f', 1, 64)
	}

	return ago(whole) + " until " + stampOf(&last).Text
}

// levelOfPhase says how a Restore of Velero's goes.
func levelOfPhase(phase string) string {
	switch {
	case phase == "Completed":
		return levelHealthy
	case strings.HasSuffix(phase, "Failed") || strings.HasPrefix(phase, "Failed"):
		return levelProblem
	default:
		return levelWarning
	}
}
