package printer

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // For the parts of the page.
	"encoding/base64"
	"html/template"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
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
	// StyleHash and ScriptHash are for the Content-Security-Policy.
	StyleHash, ScriptHash string
	Style, Script         template.HTML
	Findings              []entry
	Trees                 []*branch
	Timings               []timing
	// Span describes the time range of the bars.
	Span string
}

// html returns a report as one self-contained file.
func html(r *report.Report) ([]byte, error) {
	t, err := template.New("page").Funcs(template.FuncMap{
		"outcomes": outcomes, "result": itemResult, "state": stateName, "page": pageOf, "level": func(of any) level { return levels[of] },
	}).Parse(pageTemplate)
	if err != nil {
		return nil, err //nolint:wrapcheck // Print adds the context.
	}
	f := &treeList{textReport: newTextReport(r, true, Options{}), names: namesOf(r.Trees), anchors: map[xp.ID]string{}}
	p := &page{
		Report: r, Title: "Validation", Level: levelOfReport(r), Trees: f.branches(r.Trees, nil), StyleHash: digest(pageStyle), ScriptHash: digest(pageScript),
		Style:  template.HTML("<style>" + pageStyle + "</style>"),    //nolint:gosec // The style is constant.
		Script: template.HTML("<script>" + pageScript + "</script>"), //nolint:gosec // The script is constant.
	}
	if r.Kind == report.KindInspection {
		p.Title = "Inspection of a backup"
	}
	p.Verdict, p.Next = verdict(r)
	p.Findings = f.findings(r.Problems)
	p.Timings, p.Span = timingsOf(r)
	var b bytes.Buffer
	err = t.Execute(&b, p)

	return b.Bytes(), err
}

// pageOf returns the URL of the page that explains a code; "" if the code is of a newer version.
func pageOf(code reason.Code) string {
	r, _, ok := reason.Find(string(code))
	if !ok {
		return ""
	}

	return r.URL()
}

// digest returns the hash that allows a script or style in a Content-Security-Policy.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))

	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// A timing is the bar of a Restore or a restored resource.
type timing struct {
	Name, About                  string
	Began, Held, Unpaused, Ended *time.Time
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
		t := timing{Name: restore.Name, About: "Restore, " + restore.Phase, Level: levelOfPhase(restore.Phase), Began: restore.Started}
		all = append(all, t.between(restore.Started, restore.Completed, r.Time))
	}
	if r.Kind != report.KindValidation {
		return all, setBars(all)
	}
	for n := range report.All(r.Trees...) {
		isRoot := n.Role == report.RoleClaim || n.Role == report.RoleComposite
		isNew := !first.IsZero() && n.Created != nil && !n.Created.Before(first.Truncate(time.Second))
		began := n.Created
		if n.Hold != nil {
			began = cmp.Or(began, n.Hold.Since)
		}
		if began != nil && (n.Hold != nil || isRoot && isNew) {
			resources = append(resources, timingOf(n, r, began))
		}
	}
	slices.SortStableFunc(resources, func(a, b timing) int { return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.Name, b.Name)) })
	all = append(all, resources...)

	return all, setBars(all)
}

// timingOf returns the time until a resource was Ready, or for how long it has been held.
func timingOf(n *report.Node, r *report.Report, began *time.Time) timing {
	t := timing{Name: n.String(), About: stateName(r, n.State), Began: n.Created, Level: levelHealthy}
	var ended *time.Time
	switch {
	case n.Hold != nil:
		t.Held, t.Unpaused, t.Level = n.Hold.Since, n.Hold.Unpaused, levelWarning
	case n.Ready != nil && n.Ready.Status == "True":
		ended = n.Ready.Since
		t.About += ", Ready"
	}

	return t.between(began, ended, r.Time)
}

// between sets the start and the end. Without an end, now is the end.
func (t timing) between(began, ended *time.Time, now time.Time) timing {
	t.began, t.ended, t.Ended = *began, now, ended
	if ended != nil && !ended.Before(*began) {
		t.ended = *ended
	}
	if t.ended.Before(t.began) {
		t.ended = t.began
	}
	t.Took = duration.HumanDuration(t.ended.Sub(t.began))
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

	return duration.HumanDuration(span) + " until " + last.UTC().Format("2006-01-02 15:04:05 UTC")
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

type branch struct {
	Anchor, Title, Status, Detail string
	// Healthy is set if it and all below it have nothing to report; then it is folded.
	Healthy  bool
	Badges   []badge
	Children []*branch
}

type badge struct {
	Text  string
	Level level
}

type treeList struct {
	*textReport

	names   names
	anchors map[xp.ID]string
	count   int
}

func (f *treeList) branches(nodes []*report.Node, parent *report.Node) []*branch {
	var all []*branch
	for k, n := range nodes {
		if parent != nil && k >= mostSiblingsWide {
			return append(all, &branch{Title: others(len(nodes) - k)})
		}
		f.count++
		b := &branch{
			Anchor: "r" + strconv.Itoa(f.count), Title: f.names.title(group{Node: n, count: 1}, parent),
			Healthy: isHealthy(n), Badges: f.badges(n), Detail: f.detail(n),
		}
		if f.anchors[n.ID()] == "" {
			f.anchors[n.ID()] = b.Anchor
		}
		if status := f.status(group{Node: n, count: 1}); n.Ready == nil || status != n.Ready.Reason {
			b.Status = status
		}
		b.Children = f.branches(n.Children, n)
		all = append(all, b)
	}

	return all
}

func (f *treeList) badges(n *report.Node) []badge {
	first := badge{Text: stateName(f.report, n.State), Level: levels[n.State]}
	if first.Level == levelHealthy && len(n.Problems) > 0 {
		first.Level = levelPlain // The problem stands out more without a green badge.
	}
	all := []badge{first}
	for _, c := range []struct {
		name      string
		condition *report.Condition
	}{{"Synced", n.Synced}, {"Ready", n.Ready}} {
		switch {
		case c.condition == nil:
		case c.condition.Status == "True":
			all = append(all, badge{Text: c.name, Level: levelPlain})
		case c.condition.Reason == xp.ReasonReconcilePaused && n.Hold != nil:
		default:
			all = append(all, badge{Text: "not " + c.name, Level: levelWarning})
		}
	}
	if n.Restore != nil {
		all = append(all, badge{Text: "restore: " + string(n.Restore.Action), Level: levels[n.Restore.Action]})
	}

	return all
}

// detail returns what the wide table shows in columns of its own.
func (f *treeList) detail(n *report.Node) string {
	var words []string
	if n.ExternalName != "" {
		words = append(words, "external-name "+n.ExternalName)
	}
	if n.Revision != "" {
		words = append(words, "revision "+n.Revision)
	}
	if n.Hold != nil && n.Hold.Restore != "" {
		words = append(words, "held by "+n.Hold.Restore)
	}
	if d := f.since(n.Created); d != "" {
		words = append(words, "created "+d+" ago")
	}

	return strings.Join(words, " · ")
}

// An entry is a finding whose objects link to the tree.
type entry struct {
	report.Problem

	Objects []place
	// More is the number of objects that are not shown.
	More int
	// Step is the next step before its Command, and Rest after it. Command is "" if there is none.
	Step, Command, Rest string
}

type place struct {
	Name, Anchor string
}

// afterCommand matches the beginning of a text behind a command.
var afterCommand = regexp.MustCompile(` \(|[;,] `)

// splitStep returns a next step before its command, the command if there is one, and the rest.
func splitStep(next string) (step, command, rest string) {
	at := commandAtEnd.FindStringSubmatchIndex(next)
	if at == nil {
		return next, "", ""
	}
	command = next[at[2]:at[3]]
	if end := afterCommand.FindStringIndex(command); end != nil {
		command, rest = command[:end[0]], command[end[0]:]
	}

	return next[:at[0]+1], command, rest
}

func (f *treeList) findings(problems []report.Problem) []entry {
	var all []entry
	for _, each := range findings(problems) {
		objects, more := f.shown(each)
		shown := entry{Problem: each.Problem, More: more}
		shown.Step, shown.Command, shown.Rest = splitStep(each.Next)
		for _, object := range objects {
			shown.Objects = append(shown.Objects, place{Name: object.String(), Anchor: f.anchors[object.ID()]})
		}
		all = append(all, shown)
	}

	return all
}
