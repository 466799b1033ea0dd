package printer

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // For the parts of the page.
	"encoding/base64"
	"html/template"
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
