//go:build browser

package printer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// largeReport returns a report of XRs with ten composed resources each. Every hundredth XR has a
// problem.
func largeReport(xrs int) *report.Report {
	var trees []*report.Node
	var problems []report.Problem
	for n := range xrs {
		name := fmt.Sprintf("environment-%04d", n)
		tree := healthyNode(xrRef(name), report.RoleComposite)
		for c := range 10 {
			bucket := xp.Ref{APIVersion: "s3.aws.m.upbound.io/v1beta1", Kind: "Bucket", Namespace: "team-a", Name: fmt.Sprintf("%s-%d", name, c)}
			tree.Children = append(tree.Children, healthyNode(bucket, report.RoleManaged))
		}
		if n%100 == 99 {
			tree.Problems = []reason.Code{reason.NotReady}
			problems = append(problems, problem(reason.NotReady, tree.Ref, "it is not Ready", "wait"))
		}
		trees = append(trees, tree)
	}

	return validation(trees, problems...)
}

// BenchmarkBrowser measures how long Chromium takes from the navigation to a page of 1,000 XRs until
// its load event has ended, on a phone's screen and a desktop's.
func BenchmarkBrowser(bench *testing.B) {
	var page strings.Builder
	if err := Print(&page, largeReport(1000), HTML, Options{}); err != nil {
		bench.Fatal(err)
	}
	for _, width := range []int{360, 1600} {
		bench.Run(fmt.Sprintf("1000XRs/%dpx", width), func(bench *testing.B) {
			b := newBrowser(bench)
			for bench.Loop() {
				b.open(page.String(), "", width, false)
			}
			took := eval[float64](b, "performance.getEntriesByType('navigation')[0].loadEventEnd")
			painted := eval[float64](b, "new Promise((done) => requestAnimationFrame(() => done(performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now())))")
			bench.ReportMetric(took, "ms/load")
			bench.ReportMetric(painted, "ms/paint")
			bench.ReportMetric(float64(page.Len())/1e6, "MB/page")
		})
	}
}
