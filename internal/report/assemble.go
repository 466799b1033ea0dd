package report

import (
	"cmp"
	"slices"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Assemble sorts the problems, adds their codes to the nodes and computes the summary.
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
	if n.State != Missing && n.State != Unread && n.State != Foreign {
		switch n.Role {
		case RoleClaim:
			s.Claims++
		case RoleComposite:
			s.XRs++
		case RoleManaged:
			s.Managed++
		case RoleUsage, RoleOther:
		}
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

// Failing returns the number of problems, and with strict of warnings, that fail a command.
func (r *Report) Failing(strict bool) int {
	if strict {
		return r.Summary.Problems + r.Summary.Warnings
	}

	return r.Summary.Problems
}

// A Problem is something that is wrong with an object.
type Problem struct {
	Code     reason.Code `json:"code"`
	Severity Severity    `json:"severity"`
	Object   xp.Ref      `json:"object"`
	// Others are further objects that the problem is about, such as the other one of two
	// duplicates.
	Others []xp.Ref `json:"others,omitempty"`
	// Reason is what is wrong. Next is what to do.
	Reason string `json:"reason"`
	Next   string `json:"next"`
}

// A Severity is problem or warning.
type Severity string

// Severities. A warning may be intended. It makes a command fail only with --strict.
const (
	Error   Severity = "problem"
	Warning Severity = "warning"
)

// Sort sorts problems by severity, then code, then object.
func Sort(problems []Problem) {
	rank := map[reason.Code]int{}
	for n, r := range reason.All() {
		rank[r.Code] = n
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(rank[a.Code], rank[b.Code]), a.Object.Compare(b.Object), cmp.Compare(a.Reason, b.Reason))
	})
}
