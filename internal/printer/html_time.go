package printer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// A timing is the bar of a Restore or a restored resource.
type timing struct {
	Name, About                  string
	Began, Held, Unpaused, Ended *stamp
	Took, From, Width            string
	Level                        level
	began, ended                 time.Time
}

// timingsOf returns the timings of the Restores, and of each claim or XR that is held or younger
// than the first Restore. It also describes the time range of the bars.
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
		return all, setBars(all)
	}
	for n := range report.All(r.Trees...) {
		isRoot := n.Role == report.RoleClaim || n.Role == report.RoleComposite
		isNew := !first.IsZero() && n.Created != nil && !n.Created.Before(first.Truncate(time.Second))
		if n.Hold != nil || isRoot && isNew {
			resources = append(resources, timingOf(n, r)...)
		}
	}
	slices.SortStableFunc(resources, func(a, b timing) int { return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.Name, b.Name)) })
	all = append(all, resources...)

	return all, setBars(all)
}

// timingOf returns the time until a resource was Ready, or for how long it has been held; nil
// without a start time.
func timingOf(n *report.Node, r *report.Report) []timing {
	t := timing{Name: n.String(), About: stateName(r, n.State), Began: stampOf(n.Created), Level: levelHealthy}
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

// between sets the start and the end. Without an end, now is the end.
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

// setBars sets the position and width of each bar. It returns a description of the time range.
func setBars(all []timing) string {
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
	span := max(last.Sub(first), time.Second)
	const hundred = 100.
	percent := func(d time.Duration) float64 { return hundred * float64(d) / float64(span) }
	for n, t := range all {
		// A bar is at least 1 % wide, so that it is visible.
		width := max(percent(t.ended.Sub(t.began)), 1)
		all[n].From = strconv.FormatFloat(min(percent(t.began.Sub(first)), hundred-width), 'f', 1, 64)
		all[n].Width = strconv.FormatFloat(width, 'f', 1, 64)
	}

	return ago(span) + " until " + stampOf(&last).Text
}

func levelOfPhase(phase string) level {
	switch {
	case phase == "Completed":
		return levelHealthy
	case strings.HasSuffix(phase, "Failed") || strings.HasPrefix(phase, "Failed"):
		return levelProblem
	default:
		return levelWarning
	}
}
