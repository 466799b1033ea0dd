package printer

import (
	"slices"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	// minGroup is how many similar healthy resources without children become one line. minTreeGroup
	// is that for resources with children.
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

// groups returns the siblings in their order. Similar healthy ones are one group, so that the
// others stand out.
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
		case !added[l]:
			added[l] = true
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

// isHealthy reports whether a resource and all its children have nothing to report. A resource that
// is neither a claim, an XR nor an MR needs no conditions.
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
