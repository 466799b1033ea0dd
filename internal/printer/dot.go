package printer

import (
	"strings"

	"github.com/emicklei/dot"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// These are the fill colours of a graph's nodes. They differ in brightness too, for readers who
// cannot tell red from green.
const (
	fillHealthy = "#e6f4ea"
	fillWarning = "#fff1c2"
	fillProblem = "#f8c9c4"
)

// graph returns the trees in Graphviz's language, for dot -Tsvg.
func graph(r *report.Report) string {
	g := dot.NewGraph(dot.Directed)
	g.Attr("rankdir", "LR")
	g.NodeInitializer(func(n dot.Node) {
		n.Attrs("shape", "box", "style", "filled,rounded", "fontname", "sans-serif", "fillcolor", fillHealthy)
	})
	wrong := map[xp.ID][]report.Problem{}
	for _, p := range r.Problems {
		wrong[p.Object.ID()] = append(wrong[p.Object.ID()], p)
	}
	names := namesOf(r.Trees)
	var draw func(n *report.Node, parent *dot.Node, path string)
	draw = func(n *report.Node, parent *dot.Node, path string) {
		if n == nil {
			return
		}
		// The path makes node names unique: an object that two XRs list is drawn below each of
		// them.
		path += "/" + n.APIVersion + " " + n.String()
		node := g.Node(path)
		node.Label(label(n, r, names))
		paintNode(node, n, wrong[n.ID()])
		delete(wrong, n.ID())
		if parent != nil {
			e := g.Edge(*parent, node)
			if n.State == report.Foreign || n.State == report.Missing {
				e.Dashed()
			}
		}
		for _, child := range n.Children {
			draw(child, &node, path)
		}
	}
	for _, n := range r.Trees {
		draw(n, nil, "")
	}
	addLegend(g)
	for _, p := range r.Problems {
		if wrong[p.Object.ID()] == nil {
			continue
		}
		node := g.Node(" " + p.Object.APIVersion + " " + p.Object.String())
		node.Label(replaceBackslashes(p.Object.String()))
		paintNode(node, &report.Node{}, wrong[p.Object.ID()])
		delete(wrong, p.Object.ID())
	}

	return g.String()
}

// addLegend adds a box that explains the colours and the lines.
func addLegend(g *dot.Graph) {
	box := g.Subgraph("legend", dot.ClusterOption{})
	box.Attr("label", "legend")
	box.Attr("fontname", "sans-serif")
	healthy := box.Node("legend healthy").Label("nothing to report").Attr("fillcolor", fillHealthy)
	warning := box.Node("legend warning").Label("held, paused or with a warning").Attr("fillcolor", fillWarning)
	problem := box.Node("legend problem").Label("a problem").Attr("fillcolor", fillProblem)
	box.Edge(healthy, warning, "composes or binds")
	box.Edge(warning, problem, "names, but it is missing or not its own").Dashed()
}

func label(n *report.Node, r *report.Report, names names) string {
	lines := []string{names.title(group{Node: n, count: 1}, nil), stateName(r, n.State)}
	if n.Restore != nil {
		lines[1] += ", restore: " + string(n.Restore.Action)
	}
	for _, c := range n.Problems {
		lines = append(lines, string(c))
	}
	for k := range lines {
		lines[k] = replaceBackslashes(lines[k])
	}

	return strings.Join(lines, "\n")
}

func paintNode(node dot.Node, n *report.Node, problems []report.Problem) {
	var messages []string
	fill := fillHealthy
	if n.State == report.Held || n.Paused || len(problems)+len(n.Problems) > 0 {
		fill = fillWarning
	}
	for _, p := range problems {
		if p.Severity == report.Error {
			fill = fillProblem
		}
		messages = append(messages, replaceBackslashes(string(p.Code)+": "+p.Reason+"; "+p.Next))
	}
	node.Attr("fillcolor", fill)
	if len(messages) > 0 {
		node.Attr("tooltip", strings.Join(messages, "\n"))
	}
}

// replaceBackslashes replaces backslashes, which start an escape in Graphviz.
func replaceBackslashes(s string) string { return strings.ReplaceAll(s, `\`, "∖") }
