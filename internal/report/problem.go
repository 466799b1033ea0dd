package report

import (
	"cmp"
	"slices"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

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
