package diagnosis

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Selection limits a report. All conditions must hold; the zero value selects everything.
type Selection struct {
	// Namespace selects trees with an object in it.
	Namespace string
	// Restore selects trees with an object that this Restore created, as namespace/name. Label is
	// the value of Velero's restore label.
	Restore string
	Label   string
	// Gone is set if the Restore does not exist any more.
	Gone bool
	// Names are XRs, claims or roots: namespace/name, or name if cluster-scoped; kind/name and
	// kind.group/name match in any namespace.
	Names []string
}

// Select returns the selected trees, their problems, and those of names and Restores without any.
func (o *Objects) Select(c Selection, trees []*report.Node, problems []report.Problem) ([]*report.Node, []report.Problem) {
	if c.Namespace == "" && c.Restore == "" && len(c.Names) == 0 {
		return trees, problems
	}
	s := selector{Objects: o, Selection: c, kept: map[xp.ID]bool{}, found: map[string]bool{}}
	chosen := map[*report.Node]bool{}
	for _, n := range trees {
		if s.wants(n) {
			chosen[n] = true
			for below := range report.All(n) {
				s.kept[below.ID()] = true
			}
		}
	}
	problems = slices.DeleteFunc(slices.Clone(problems), func(p report.Problem) bool { return !s.concerns(p) })
	// An object that a tree left behind is a tree of its own.
	about := map[xp.ID]bool{}
	for _, p := range problems {
		about[p.Object.ID()] = true
	}
	trees = slices.DeleteFunc(slices.Clone(trees), func(n *report.Node) bool { return !chosen[n] && !about[n.ID()] })

	return trees, append(problems, s.missing()...)
}

type selector struct {
	*Objects
	Selection

	kept map[xp.ID]bool
	// found are the Names that matched.
	found    map[string]bool
	restored bool
}

// wants reports whether a tree is selected.
func (s *selector) wants(tree *report.Node) bool {
	named, restored, here := len(s.Names) == 0, s.Restore == "", s.Namespace == ""
	for n := range report.All(tree) {
		here = here || n.Namespace == s.Namespace
		if n.State == report.Missing || n.State == report.Foreign || n.State == report.Unread {
			continue // It belongs to another tree, or is unknown.
		}
		restored = restored || s.isRestored(n)
		for _, name := range s.Names {
			if (n == tree || n.Role == report.RoleComposite) && isNamed(n.Ref, name) {
				named, s.found[name] = true, true
			}
		}
	}
	s.restored = s.restored || restored

	return named && restored && here
}

// isNamed reports whether a name matches an object.
func isNamed(r xp.Ref, name string) bool {
	kind, bare, ok := strings.Cut(name, "/")

	return r.Path() == name || ok && bare == r.Name &&
		(strings.EqualFold(kind, r.Kind) || strings.EqualFold(kind, r.GroupVersionKind().GroupKind().String()))
}

// isRestored reports whether the Restore created an object, or holds it.
func (s *selector) isRestored(n *report.Node) bool {
	if n.Hold != nil && n.Hold.Restore == s.Restore {
		return true
	}
	u := s.Get(n.Ref)

	return u != nil && u.GetLabels()[xp.LabelRestore] == s.Label
}

// concerns reports whether a problem is, or may be, about a selected object.
func (s *selector) concerns(p report.Problem) bool {
	return p.Code == reason.NotRead || p.Code == reason.XRDTerminating || s.kept[p.Object.ID()] ||
		slices.ContainsFunc(p.Others, func(r xp.Ref) bool { return s.kept[r.ID()] })
}

// missing returns a problem for each name, and for the Restore, without objects.
func (s *selector) missing() []report.Problem {
	var problems []report.Problem
	for _, name := range s.Names {
		if s.found[name] {
			continue
		}
		namespace, bare := path.Split(name)
		problems = append(problems, report.Problem{
			Code: reason.NotFound, Severity: report.Error, Object: xp.Ref{Kind: "*", Namespace: strings.TrimSuffix(namespace, "/"), Name: bare},
			Reason: "there is no claim, XR or managed resource of this name", Next: s.similarNames(bare),
		})
	}
	if s.Restore != "" && !s.restored {
		namespace, name, _ := strings.Cut(s.Restore, "/")
		why, next := "", "see what it did: "+xp.DescribeRestore(name).String()
		if s.Gone {
			why, next = "no such Restore exists, and ", "list the Restores: velero restore get"
		}
		problems = append(problems, report.Problem{
			Code: reason.NotFound, Severity: report.Error, Object: xp.Ref{APIVersion: "velero.io/v1", Kind: "Restore", Namespace: namespace, Name: name},
			Reason: fmt.Sprintf("%sno object has its label %s=%s: nothing of Crossplane that it created is left", why, xp.LabelRestore, s.Label),
			Next:   next,
		})
	}

	return problems
}

// similarNames returns the claims and XRs of the name in other namespaces, or how to find one.
func (s *selector) similarNames(name string) string {
	var paths []string
	for _, u := range s.with(isClaim | isComposite) {
		if u.Name == name {
			paths = append(paths, u.Path())
		}
	}
	if len(paths) > 0 {
		return "did you mean " + strings.Join(paths, " or ") + "?"
	}

	return "names are NAMESPACE/NAME, or NAME with -n; run validate without names to list what exists"
}

// Explain adds what held objects wait for to the nodes of trees.
func (s ClusterState) Explain(trees []*report.Node) {
	for n := range report.All(trees...) {
		if plan, ok := s.Plans[n.ID()]; ok && n.Hold != nil {
			n.Hold.Waiting = reason.Strings(plan.Waiting)
			if !plan.Failed.IsZero() {
				n.Hold.Waiting = []string{plan.Failed.String()}
			}
		}
	}
}
