package printer

import (
	"slices"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	// minGroup is how many resources without children have to be alike and well to be one line, and
	// minTreeGroup how many with children.
	minGroup     = 3
	minTreeGroup = 6
)

// A group is a resource, or several siblings that are alike and well.
type group struct {
	*report.Node

	count int
	// rest says that it stands for what is not shown.
	rest bool
}

// groupKey is what siblings have in common that are one group.
type groupKey struct {
	kind          xp.ID
	state         report.State
	synced, ready string
	outcome       report.Outcome
	leaf          bool
}

// groups returns the siblings in their order, with those that are alike and well in one line: they
// are not what a person looks for.
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
	told := map[groupKey]bool{}
	for _, n := range siblings {
		if n == nil {
			continue
		}
		l := groupKeyOf(n)
		least := minGroup
		if !l.leaf {
			least = minTreeGroup
		}
		switch {
		case count[l] < least || !isHealthy(n):
			all = append(all, group{Node: n, count: 1})
		case !told[l]:
			told[l] = true
			all = append(all, group{Node: n, count: count[l]})
		}
	}

	return all
}

func groupKeyOf(n *report.Node) groupKey {
	if n == nil {
		return groupKey{}
	}
	l := groupKey{kind: n.ID(), state: n.State, synced: statusOf(n.Synced), ready: statusOf(n.Ready), leaf: len(n.Children) == 0}
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

// isHealthy reports whether there is nothing to say about a resource and all that it is made of.
// What is neither an XR nor an MR has no conditions.
func isHealthy(n *report.Node) bool {
	if n == nil || len(n.Problems) > 0 || n.Hold != nil || n.Paused || n.State != report.Adopted && n.State != report.Alone {
		return false
	}
	for _, c := range []*report.Condition{n.Synced, n.Ready} {
		if c == nil && n.Role != report.RoleOther && n.Role != report.RoleUsage || c != nil && c.Status != "True" {
			return false
		}
	}

	return isExpected(n.Restore) && !slices.ContainsFunc(n.Children, func(child *report.Node) bool { return !isHealthy(child) })
}
