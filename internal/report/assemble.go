package report

import (
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Assemble fills a Report: it sorts the problems, adds their codes to the nodes and computes the
// summary.
func (r *Report) Assemble(trees []*Node, problems []Problem) {
	Sort(problems)
	r.APIVersion, r.Trees, r.Problems, r.Summary = APIVersion, trees, problems, Summary{}
	if r.Trees == nil {
		r.Trees = []*Node{}
	}
	if r.Problems == nil {
		r.Problems = []Problem{}
	}
	codes := map[xp.ID][]reason.Code{}
	for _, p := range problems {
		id := p.Object.ID()
		codes[id] = append(codes[id], p.Code)
		if p.Code == reason.Duplicated { // A user decides which of the two is the duplicate.
			for _, other := range p.Others {
				codes[other.ID()] = append(codes[other.ID()], p.Code)
			}
		}
		if p.Severity == Error {
			r.Summary.Problems++
		} else {
			r.Summary.Warnings++
		}
	}
	for n := range All(trees...) {
		n.Problems = codes[n.ID()]
	}
	for _, n := range trees {
		r.Summary.count(n, false)
	}
}

// count counts a tree. Nodes that are missing, unread or foreign do not belong to it.
func (s *Summary) count(n *Node, composed bool) {
	here := n.State != Missing && n.State != Unread && n.State != Foreign
	if here {
		s.countRole(n.Role)
		if n.State == Held {
			s.Held++
		}
	}
	if composed {
		s.Composed++
		if n.State == Adopted {
			s.Adopted++
		}
	}
	for _, child := range n.Children {
		s.count(child, n.Role == RoleComposite)
	}
}

func (s *Summary) countRole(r Role) {
	switch r {
	case RoleClaim:
		s.Claims++
	case RoleComposite:
		s.XRs++
	case RoleManaged:
		s.Managed++
	case RoleUsage, RoleOther:
	}
}

// Failing returns the number of problems that make a command fail; with strict it includes
// warnings.
func (r *Report) Failing(strict bool) int {
	if strict {
		return r.Summary.Problems + r.Summary.Warnings
	}

	return r.Summary.Problems
}
