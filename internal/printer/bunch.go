package printer

import (
	"slices"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	// alike is how many resources without children have to be alike and well to be one line, and alikeTrees how many with children.
	alike      = 3
	alikeTrees = 6
)

// A bunch is a resource, or several siblings that are alike and well.
type bunch struct {
	*report.Node

	count int
	// rest says that it stands for what is not shown.
	rest bool
}

// likeness is what siblings have in common that are one bunch.
type likeness struct {
	kind          xp.ID
	state         report.State
	synced, ready string
	outcome       report.Outcome
	leaf          bool
}

// bunches returns the siblings in their order, with those that are alike and well in one line: they are not what a person looks for.
func (s *sheet) bunches(siblings []*report.Node) []bunch {
	count := map[likeness]int{}
	if !s.all {
		for _, n := range siblings {
			if isWell(n) {
				count[likenessOf(n)]++
			}
		}
	}
	var all []bunch
	told := map[likeness]bool{}
	for _, n := range siblings {
		if n == nil {
			continue
		}
		l := likenessOf(n)
		least := alike
		if !l.leaf {
			least = alikeTrees
		}
		switch {
		case count[l] < least || !isWell(n):
			all = append(all, bunch{Node: n, count: 1})
		case !told[l]:
			told[l] = true
			all = append(all, bunch{Node: n, count: count[l]})
		}
	}

	return all
}

func likenessOf(n *report.Node) likeness {
	if n == nil {
		return likeness{}
	}
	l := likeness{kind: n.ID(), state: n.State, synced: statusOf(n.Synced), ready: statusOf(n.Ready), leaf: len(n.Children) == 0}
	l.kind.Name = ""
	if n.Restore != nil {
		l.outcome = *n.Restore
	}

	return l
}

func statusOf(c *report.Condition) string {
	if c == nil {
		return ""
	}

	return c.Status
}

// isWell tells whether there is nothing to say about a resource and all that it is made of. What is neither an XR nor an MR has no conditions.
func isWell(n *report.Node) bool {
	if n == nil || len(n.Problems) > 0 || n.Hold != nil || n.Paused || n.State != report.Adopted && n.State != report.Alone {
		return false
	}
	for _, c := range []*report.Condition{n.Synced, n.Ready} {
		if c == nil && n.Role != report.RoleOther && n.Role != report.RoleUsage || c != nil && c.Status != "True" {
			return false
		}
	}

	return isExpected(n.Restore) && !slices.ContainsFunc(n.Children, func(child *report.Node) bool { return !isWell(child) })
}
