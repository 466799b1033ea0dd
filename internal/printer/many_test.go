package printer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// longList is a report of an XR that lists many missing objects of different kinds.
func longList(long int) *report.Report {
	tree := order("orders")
	xr := tree.Children[0]
	var problems []report.Problem
	for n := range long {
		r := xp.Ref{APIVersion: "made.up/v1", Kind: fmt.Sprint("Kind", n), Name: "n"}
		xr.Children = append(xr.Children, &report.Node{Ref: r, Role: report.RoleOther, State: report.Missing, Problems: []reason.Code{reason.Dangling}})
		problems = append(problems, problem(reason.Dangling, r, "XOrder orders lists it, and its kind is not served", "install the provider of "+r.Kind))
	}
	other := problem(reason.Stuck, xrRef("other"), "nothing has reconciled it", "see whether Crossplane runs")

	return validation([]*report.Node{tree, healthyNode(xrRef("other"), report.RoleComposite)}, append(problems, other)...)
}

// TestLongListsAreBounded checks that output for users is bounded and still shows other problems,
// whatever an XR lists.
func TestLongListsAreBounded(t *testing.T) {
	const long = 15_000
	r := longList(long)
	for _, f := range []Format{Table, Wide, HTML} {
		for _, width := range []int{0, 80, 200} {
			got := printed(t, r, f, Options{Width: width})
			if lines := strings.Count(got, "\n"); lines > 5000 {
				t.Errorf("%s at %d: got %d lines", f, width, lines)
			}
			more := 14900
			if f != Table {
				more = 14000
			}
			for _, want := range []string{fmt.Sprintf("and %d more, which -o json has", more), "nothing has reconciled it", "Kind99", "-o json has each"} {
				if f == Wide && width == 80 && want[0] == 'a' || f != HTML && width == 200 && want[0] == '-' {
					continue // Columns are too narrow for it.
				}
				if !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
					t.Errorf("%s at %d: the output lacks %q", f, width, want)
				}
			}
		}
	}
	if got := printed(t, r, JSON, Options{}); strings.Count(got, `"Kind14999"`) != 2 {
		t.Error("JSON must contain all data")
	}
}

// TestLongListsAreFast prints very many trees with problems. The lookup of a tree's problems
// must not scan all of them.
func TestLongListsAreFast(t *testing.T) {
	const long = 20_000
	var trees []*report.Node
	var problems []report.Problem
	for n := range long {
		r := xrRef(fmt.Sprint("x", n))
		tree := healthyNode(r, report.RoleComposite)
		tree.Problems = []reason.Code{reason.NotReady}
		trees, problems = append(trees, tree), append(problems, problem(reason.NotReady, r, "it is not Ready", "wait"))
		problems[n].Severity = report.Warning
	}
	r := validation(trees, problems...)
	began := time.Now()
	printed(t, r, Table, Options{Width: 80})
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the table took %s", took)
	}
}
