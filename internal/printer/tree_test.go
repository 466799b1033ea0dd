package printer

import (
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A next step is printed with the problem, and not again in the tree.
func TestStatusRefersToTheProblem(t *testing.T) {
	const step = "look for it in the cloud"
	bucket := xp.Ref{APIVersion: "cloud.example.org/v1", Kind: "Bucket", Name: "b"}
	for why, times := range map[string]int{
		"it was being created: " + step + " [CreatePending]": 1, "it was being created: " + step + " [PossibleDuplicate]": 2,
		"it is new [AwaitingRestore]; " + step + " [CreatePending]": 2,
	} {
		n := &report.Node{Ref: bucket, Role: report.RoleManaged, State: report.Adopted, Restore: &report.Outcome{Action: report.Keep, Reason: why}}
		r := &report.Report{Kind: report.KindInspection}
		r.Assemble([]*report.Node{n}, []report.Problem{problem(reason.CreatePending, bucket, "it was being created", step)})
		if got := printed(t, r, Table, Options{}); strings.Count(got, step) != times {
			t.Errorf("%q: want the step %d times:\n%s", why, times, got)
		}
	}
}
