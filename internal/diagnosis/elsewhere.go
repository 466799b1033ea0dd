package diagnosis

import (
	"fmt"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// AdoptedElsewhere returns a warning for each receipt of another cluster that covers trees which
// are not held here. It names the roots of these trees.
func AdoptedElsewhere(receipts []adoption.Receipt, trees []*report.Node) []report.Problem {
	var problems []report.Problem
	for _, r := range receipts {
		var roots []xp.Ref
		for _, n := range trees {
			if n.Hold == nil && n.Created != nil && r.Covers(n.Namespace, *n.Created) {
				roots = append(roots, n.Ref)
			}
		}
		if len(roots) == 0 {
			continue
		}
		problems = append(problems, report.Problem{
			Code: reason.AdoptedElsewhere, Severity: report.Warning, Object: roots[0], Others: roots[1:],
			Reason: fmt.Sprintf("the cluster %s has begun to adopt it from the backup %s, with its Restore %s", r.Cluster, r.Backup, r.Restore),
			Next: "decide which cluster should manage it, and hold and retire it in the other one; if the other one does not manage it any more, run: " +
				xp.NewCommand("velero", "backup", "delete").On(r.Name).String(),
		})
	}

	return problems
}
