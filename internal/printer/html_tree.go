package printer

import (
	"regexp"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

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
			Anchor: "r" + number(f.count), Title: f.names.title(group{Node: n, count: 1}, parent),
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
		case c.condition.Reason == reasonPaused && n.Hold != nil:
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
	if n.Created != nil && !f.report.Time.IsZero() {
		words = append(words, "created "+ago(f.report.Time.Sub(*n.Created))+" ago")
	}

	return strings.Join(words, " · ")
}

// An entry is a finding whose objects link to the tree.
type entry struct {
	report.Problem

	Level level
	// URL explains the code; "" if the code is of a newer version.
	URL     string
	Objects []place
	// Step is the next step before its Command, and Rest after it. Command is "" if there is none.
	Step, Command, Rest string
	// More describes the objects that are not shown; "" if all are.
	More string
}

type place struct {
	Name, Anchor string
}

// afterCommand matches the beginning of a text behind a command.
var afterCommand = regexp.MustCompile(` \(|[;,] `)

// splitStep returns a next step before its command, the command, and the text after it. The latter
// two are "" if there is no command.
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
		shown := entry{Problem: each.Problem, Level: levels[each.Severity]}
		shown.Step, shown.Command, shown.Rest = splitStep(each.Next)
		if r, _, ok := reason.Find(string(each.Code)); ok {
			shown.URL = r.URL()
		}
		objects, more := f.shown(each)
		if more > 0 {
			shown.More = "and " + number(more) + " more"
		}
		for _, object := range objects {
			shown.Objects = append(shown.Objects, place{Name: object.String(), Anchor: f.anchors[object.ID()]})
		}
		all = append(all, shown)
	}

	return all
}
