package restoreitem

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// Remarks come last, whether or not the plan waits.
func TestDescribeRemarks(t *testing.T) {
	for want, plan := range map[string]adoption.Plan{
		"1 of 1 composed resources adopted; a; b":             {Done: true, Adopted: 1, Total: 1, Remarks: []reason.Message{{Text: "a"}, {Text: "b"}}},
		"0 of 1 composed resources adopted; waiting for w; a": {Total: 1, Waiting: []reason.Message{{Text: "w"}}, Remarks: []reason.Message{{Text: "a"}}},
		"1 of 1 composed resources adopted":                   {Done: true, Adopted: 1, Total: 1},
	} {
		if got := describe(plan); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
