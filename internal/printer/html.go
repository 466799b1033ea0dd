package printer

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // For the parts of the page.
	"encoding/base64"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

//go:embed page/page.html
var pageTemplate string

//go:embed page/page.css
var pageStyle string

//go:embed page/page.js
var pageScript string

// A page is the data of the template.
type page struct {
	*report.Report

	Title, Verdict, Next string

	Level level
	// Policy is the Content-Security-Policy: no network, and only the page's own script and style.
	Policy        string
	Style, Script template.HTML
	Time          *stamp
	Counts        []count
	Findings      []entry
	Trees         []*branch
	Timings       []timing
	// Outcomes and Results are of the dry run.
	Outcomes string
	Results  []named
	// Span describes the time range of the bars.
	Span string
}

type count struct {
	Name, Value string
	Level       level
}

// A named is a name with a badge.
type named struct {
	badge

	Name string
}

// A stamp is a time as RFC 3339 and as text.
type stamp struct {
	Stamp, Text string
}

func stampOf(t *time.Time) *stamp {
	if t == nil || t.IsZero() {
		return nil
	}

	return &stamp{Stamp: timestamp(*t), Text: t.UTC().Format("2006-01-02 15:04:05 UTC")}
}

// html returns a report as one self-contained file.
func html(r *report.Report) ([]byte, error) {
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return nil, err //nolint:wrapcheck // Print adds the context.
	}
	p := newPage(r)
	var b bytes.Buffer
	err = t.Execute(&b, p)

	return b.Bytes(), err
}

func newPage(r *report.Report) *page {
	s := newTextReport(r, true, Options{})
	f := &treeList{textReport: s, names: namesOf(r.Trees), anchors: map[xp.ID]string{}}
	p := &page{
		Report: r, Title: "Validation", Level: levelOfReport(r), Time: stampOf(&r.Time), Trees: f.branches(r.Trees, nil),
		Style:  template.HTML("<style>" + pageStyle + "</style>"),    //nolint:gosec // The style is constant.
		Script: template.HTML("<script>" + pageScript + "</script>"), //nolint:gosec // The script is constant.
	}
	p.Policy = strings.Join([]string{
		"default-src 'none'", "img-src data:", "base-uri 'none'", "form-action 'none'",
		"style-src '" + digest(pageStyle) + "'", "script-src '" + digest(pageScript) + "'",
	}, "; ")
	if r.Kind == report.KindInspection {
		p.Title = "Inspection of a backup"
	}
	p.Verdict, p.Next = verdict(r)
	p.Counts = countsOf(r)
	p.Findings = f.findings(r.Problems)
	p.Timings, p.Span = timingsOf(r)
	if a := r.DryRun; a != nil {
		p.Outcomes = outcomes(a)
		for _, f := range a.Items {
			p.Results = append(p.Results, named{badge: badge{Text: string(f.Outcome.Action), Level: levels[f.Outcome.Action]}, Name: itemResult(f)})
		}
	}

	return p
}

// digest returns the hash that allows a script or style in a Content-Security-Policy.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))

	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func countsOf(r *report.Report) []count {
	c := r.Summary
	all := []count{
		{Name: "problems", Value: number(c.Problems)},
		{Name: "warnings", Value: number(c.Warnings)},
		{Name: "held", Value: number(c.Held)},
		{Name: stateName(r, report.Adopted), Value: number(c.Adopted) + " / " + number(c.Composed)},
		{Name: "claims", Value: number(c.Claims)},
		{Name: "XRs", Value: number(c.XRs)},
		{Name: "MRs", Value: number(c.Managed)},
	}
	for n, level := range []level{levelProblem, levelWarning, levelWarning} {
		if all[n].Value != "0" {
			all[n].Level = level
		}
	}

	return all
}

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
		t := timing{Name: restore.Name, About: "Restore, " + restore.Phase, Level: levelOfPhase(restore.Phase), Began: stampOf(restore.Started)}
		all = append(all, t.between(restore.Started, restore.Completed, r.Time))
	}
	for n := range report.All(r.Trees...) {
		isRoot := n.Role == report.RoleClaim || n.Role == report.RoleComposite
		isNew := !first.IsZero() && n.Created != nil && !n.Created.Before(first.Truncate(time.Second))
		began := n.Created
		if began == nil && n.Hold != nil {
			began = n.Hold.Since
		}
		if r.Kind == report.KindValidation && began != nil && (n.Hold != nil || isRoot && isNew) {
			resources = append(resources, timingOf(n, r, began))
		}
	}
	slices.SortStableFunc(resources, func(a, b timing) int { return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.Name, b.Name)) })
	all = append(all, resources...)

	return all, setBars(all)
}

// timingOf returns the time until a resource was Ready, or for how long it has been held.
func timingOf(n *report.Node, r *report.Report, began *time.Time) timing {
	t := timing{Name: n.String(), About: stateName(r, n.State), Began: stampOf(n.Created), Level: levelHealthy}
	var ended *time.Time
	switch {
	case n.Hold != nil:
		t.Held, t.Unpaused, t.Level = stampOf(n.Hold.Since), stampOf(n.Hold.Unpaused), levelWarning
	case n.Ready != nil && n.Ready.Status == "True":
		ended = n.Ready.Since
		t.About += ", Ready"
	}

	return t.between(began, ended, r.Time)
}

// between sets the start and the end. Without an end, now is the end.
func (t timing) between(began, ended *time.Time, now time.Time) timing {
	t.began, t.ended, t.Ended = *began, now, stampOf(ended)
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
	first := slices.MinFunc(all, func(a, b timing) int { return a.began.Compare(b.began) }).began
	last := slices.MaxFunc(all, func(a, b timing) int { return a.ended.Compare(b.ended) }).ended
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
	case strings.Contains(phase, "Failed"):
		return levelProblem
	default:
		return levelWarning
	}
}
