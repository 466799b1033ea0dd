package printer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/list"
	"github.com/jedib0t/go-pretty/v6/text"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// trees returns a table: the columns of "crossplane resource trace", then those about restores.
func (s *textReport) trees() string {
	if len(s.report.Trees) == 0 {
		return ""
	}
	g := &grid{textReport: s, columns: []column{
		{title: "NAME", weight: weightName, middle: true},
		{title: "SYNCED"},
		{title: "READY"},
		{title: "STATE"},
		{title: "RESTORE"},
		{title: "EXTERNAL-NAME", weight: weightDetail, middle: true},
		{title: "REVISION", weight: weightDetail, middle: true},
		{title: "HOLD", weight: weightDetail, middle: true},
		{title: "AGE"},
		{title: "STATUS", weight: weightRepeated},
	}}
	names := namesOf(s.report.Trees)
	summed := false
	for _, b := range s.groups(s.report.Trees) {
		lines := list.NewWriter()
		lines.SetStyle(list.Style{
			CharItemSingle: "└─", CharItemTop: "├─", CharItemFirst: "├─", CharItemMiddle: "├─", CharItemBottom: "└─", CharItemVertical: "│  ", CharNewline: "\n",
		})
		shown := s.descend(lines, b, names)
		drawn := append([]string{names.title(b, nil)}, strings.Split(lines.Render(), "\n")...)
		for n, each := range shown {
			s.line(g, drawn[n], each)
			summed = summed || each.count > 1
		}
	}

	tree := g.render()
	if summed {
		tree += "\n" + s.wrapped("(A line with × stands for as many objects in the same good state; -o wide has a line for each.)", "")
	}

	return tree
}

// descend appends the children of a group to a tree. It returns the groups shown, b first.
func (s *textReport) descend(lines list.Writer, b group, names names) []group {
	shown := []group{b}
	if b.count > 1 {
		return shown
	}
	siblings := s.groups(b.Children)
	limit := min(len(siblings), mostSiblings)
	if s.all {
		limit = min(len(siblings), mostSiblingsWide)
	}
	for _, below := range siblings[:limit] {
		lines.AppendItem(names.title(below, b.Node))
		lines.Indent()
		shown = append(shown, s.descend(lines, below, names)...)
		lines.UnIndent()
	}
	if more := siblings[limit:]; len(more) > 0 {
		count := 0
		for _, m := range more {
			count += m.count
		}
		lines.AppendItem(others(count))
		shown = append(shown, group{Node: &report.Node{}, rest: true})
	}

	return shown
}

// These limit the lines below one resource, which can list any number of objects.
const (
	mostSiblings     = 100
	mostSiblingsWide = 1000
)

// others is the line for resources that are not shown.
func others(n int) string { return fmt.Sprintf("and %d more, which -o json has", n) }

func (s *textReport) line(g *grid, drawn string, b group) {
	if b.rest {
		g.add(plain(drawn))

		return
	}
	action := ptr.Deref(b.Restore, report.Outcome{}).Action
	cells := []cell{
		plain(drawn), condition(b.Synced), condition(b.Ready), levels[b.State].cell(stateName(s.report, b.State)), levels[action].cell(string(action)),
	}
	external, revision, hold, age := "", "", "", ""
	if s.all {
		external, revision, age = b.ExternalName, b.Revision, s.since(b.Created)
		if b.Hold != nil {
			hold = cmp.Or(b.Hold.Restore, "unknown")
		}
	}
	status := plain(s.status(b))
	if len(b.Problems) > 0 {
		cells[0].colours = []text.Color{text.Bold}
		status = levelWarning.cell(status.text)
		if s.grave[b.ID()] {
			status = levelProblem.cell(status.text)
		}
	}
	g.add(append(cells, plain(external), plain(revision), plain(hold), plain(age), status)...)
}

func condition(c *report.Condition) cell {
	switch {
	case c == nil:
		return plain("-")
	case c.Status == "True":
		return plain(c.Status)
	case c.Status == "False":
		return levelProblem.cell(c.Status)
	default:
		return levelWarning.cell(c.Status)
	}
}

// stateName returns the name of a state. In a backup Adopted is "owned": nothing is adopted yet.
func stateName(r *report.Report, of report.State) string {
	if r.Kind == report.KindInspection && of == report.Adopted {
		return "owned"
	}

	return string(of)
}

// status returns in a few words what is notable about a group.
func (s *textReport) status(b group) string {
	var words []string
	if b.Restore != nil && !isProblem(b.Node, b.Restore.Reason) {
		words = append(words, withoutName(b.Ref, b.Restore.Reason))
	}
	for _, code := range b.Problems {
		// Other columns show these.
		if code != reason.Held && code != reason.NotSynced && code != reason.NotReady {
			words = append(words, string(code))
		}
	}
	if b.Hold != nil {
		words = append(words, s.held(b.Node))
	}
	words = slices.DeleteFunc(append(words, conditionMessages(b.Node)...), func(w string) bool { return w == "" })
	switch {
	case len(words) > 0:
		return strings.Join(words, "; ")
	case b.Paused && b.Hold == nil:
		return "paused"
	case b.Ready != nil && b.count == 1:
		return b.Ready.Reason
	default:
		return ""
	}
}

// isProblem reports whether a problem of the resource shows the reason of its restore's outcome.
func isProblem(n *report.Node, why string) bool {
	return !strings.Contains(why, "]; ") && slices.ContainsFunc(n.Problems, func(code reason.Code) bool { return strings.HasSuffix(why, "["+string(code)+"]") })
}

// conditionMessages returns why conditions are not True, except for a pause by a hold.
func conditionMessages(n *report.Node) []string {
	var words []string
	for _, c := range []*report.Condition{n.Synced, n.Ready} {
		switch {
		case c == nil || c.Status == "True" || c.Reason == xp.ReasonReconcilePaused && n.Hold != nil:
		case c.Message == "":
			words = append(words, c.Reason)
		default:
			words = append(words, strings.TrimPrefix(c.Reason+": "+c.Message, ": "))
		}
	}

	return words
}

// held returns for how long a resource has been held, and its cause.
func (s *textReport) held(n *report.Node) string {
	h := n.Hold
	var words []string
	if d := s.since(h.Since); d != "" {
		words = append(words, "for "+d)
	}
	switch {
	case len(h.Waiting) > 0:
		if what, _, _ := strings.Cut(h.Waiting[0], ": "); what != n.String() {
			words = append(words, "waits for "+what)
		}
	case h.Unpaused != nil:
		words = append(words, "unpaused, not reconciled yet")
	}

	return strings.Join(words, ", ")
}

// names has the kinds of which several groups in the trees have one. Their titles include the group.
type names map[string]bool

func namesOf(trees []*report.Node) names {
	several, groups := names{}, map[string]string{}
	for n := range report.All(trees...) {
		group := n.GroupVersionKind().Group
		if other, known := groups[n.Kind]; known && other != group {
			several[n.Kind] = true
		}
		groups[n.Kind] = group
	}

	return several
}

// title returns the name of a group, with the namespace if the parent is not in it.
func (several names) title(b group, parent *report.Node) string {
	title := b.Kind
	if several[b.Kind] {
		title = b.GroupVersionKind().GroupKind().String()
	}
	if b.count > 1 {
		title += fmt.Sprintf(" ×%d", b.count)
	} else {
		title += "/" + b.Name
	}
	if b.Namespace != "" && (parent == nil || parent.Namespace != b.Namespace) {
		title += " (" + b.Namespace + ")"
	}

	return title
}

const (
	// minGroup is how many similar healthy resources become one line, minTreeGroup if with children.
	minGroup     = 3
	minTreeGroup = 6
)

// A group is one resource, or several similar healthy siblings.
type group struct {
	*report.Node

	count int
	// rest is set for the line that stands for resources not shown.
	rest bool
}

// groupKey is what the siblings of a group have in common.
type groupKey struct {
	kind          xp.ID
	state         report.State
	synced, ready string
	outcome       report.Outcome
	leaf          bool
}

// groups makes similar healthy siblings one group, so that the others stand out.
func (s *textReport) groups(siblings []*report.Node) []group {
	count := map[groupKey]int{}
	if !s.all {
		for _, n := range siblings {
			if isHealthy(n) {
				count[groupKeyOf(n)]++
			}
		}
	}
	var all []group
	added := map[groupKey]bool{}
	for _, n := range siblings {
		l := groupKeyOf(n)
		least := minGroup
		if !l.leaf {
			least = minTreeGroup
		}
		switch {
		case count[l] < least || !isHealthy(n):
			all = append(all, group{Node: n, count: 1})
		case !added[l]:
			added[l] = true
			all = append(all, group{Node: n, count: count[l]})
		}
	}

	return all
}

func groupKeyOf(n *report.Node) groupKey {
	l := groupKey{
		kind: n.ID(), state: n.State, synced: ptr.Deref(n.Synced, report.Condition{}).Status, ready: ptr.Deref(n.Ready, report.Condition{}).Status,
		outcome: ptr.Deref(n.Restore, report.Outcome{}), leaf: len(n.Children) == 0,
	}
	l.kind.Name = ""

	return l
}

// isHealthy reports whether a resource and all its children have nothing to report. A resource that
// is neither a claim, an XR nor an MR needs no conditions.
func isHealthy(n *report.Node) bool {
	if len(n.Problems) > 0 || n.Hold != nil || n.Paused || n.State != report.Adopted && n.State != report.Alone {
		return false
	}
	for _, c := range []*report.Condition{n.Synced, n.Ready} {
		if c == nil && n.Role != report.RoleOther && n.Role != report.RoleUsage || c != nil && c.Status != "True" {
			return false
		}
	}

	return isExpected(n.Restore) && !slices.ContainsFunc(n.Children, func(child *report.Node) bool { return !isHealthy(child) })
}
