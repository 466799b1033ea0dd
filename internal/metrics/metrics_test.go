package metrics

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

var update = flag.Bool("update", false, "write what is printed to testdata, and the table of docs/monitoring.md")

// now is the time of the samples.
var now = time.Date(2026, time.March, 14, 9, 30, 0, 0, time.UTC)

func before(d time.Duration) *time.Time {
	t := now.Add(-d)

	return &t
}

func heldNode(kind, name string, since *time.Time, codes ...reason.Code) *report.Node {
	return &report.Node{
		Ref:  xp.Ref{APIVersion: "example.org/v1", Kind: kind, Namespace: "team-a", Name: name},
		Hold: &report.Hold{Restore: "velero/nightly", Since: since}, State: report.Held, Problems: codes,
	}
}

func problem(code reason.Code, severity report.Severity, name string) report.Problem {
	return report.Problem{Code: code, Severity: severity, Object: xp.Ref{APIVersion: "example.org/v1", Kind: "Bucket", Name: name}}
}

func samples() map[string]*report.Report {
	shared := heldNode("Bucket", "a", before(2*time.Hour), reason.LeakedHold, reason.NotReady)
	xr := heldNode("Order", "x", before(time.Hour), reason.Held)
	xr.Children = []*report.Node{shared, heldNode("Bucket", "b", before(3*time.Hour), reason.LeakedHold), heldNode("Bucket", "c", nil, reason.Quarantined)}
	validation := &report.Report{
		Kind: report.KindValidation, Time: now, Trees: []*report.Node{xr, shared},
		Summary: report.Summary{Claims: 1, XRs: 2, Composed: 3, Managed: 4, Adopted: 2, Held: 4},
		Problems: []report.Problem{
			problem(reason.LeakedHold, report.Error, "a"), problem(reason.LeakedHold, report.Error, "b"), problem(reason.Held, report.Error, "x"),
			problem(reason.NotReady, report.Warning, "a"),
		},
		LastAdoption: &report.Restore{Name: "velero/nightly", Started: before(time.Hour), Completed: before(45 * time.Minute), Operations: 2},
	}
	inspection := &report.Report{
		Kind: report.KindInspection, Time: now, Summary: report.Summary{XRs: 1, Managed: 2},
		Problems: []report.Problem{problem(reason.IdentityMissing, report.Error, "a"), problem(reason.IdentityMissing, report.Warning, "b")},
	}
	hostile := &report.Report{Kind: report.KindValidation, Time: now, Trees: []*report.Node{heldNode("Or\"der\\\n\xff# EOF", "x", nil, reason.Held)}}

	return map[string]*report.Report{"validation": validation, "inspection": inspection, "hostile": hostile}
}

// TestGolden compares the metrics with reviewed files, and reads them as a Pushgateway and a textfile
// collector do. After a change run go test ./internal/metrics -update and review the difference.
func TestGolden(t *testing.T) {
	found := map[string]bool{}
	for name, sample := range samples() {
		got, err := Report(sample)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, "testdata/"+name+".txt", string(got))
		if strings.Count(string(got), "\n# EOF\n") != 1 || !bytes.HasSuffix(got, []byte("\n# EOF\n")) {
			t.Errorf("%s must end with its only # EOF, got:\n%s", name, got)
		}
		p := expfmt.NewTextParser(model.LegacyValidation)
		families, err := p.TextToMetricFamilies(bytes.NewReader(got))
		if err != nil {
			t.Errorf("%s must be readable as the text format of Prometheus: %v", name, err)
		}
		for family := range families {
			found[family] = true
		}
		if problems, err := promlint.New(bytes.NewReader(got)).Lint(); err != nil || len(problems) > 0 {
			t.Errorf("%s must follow the conventions of Prometheus: %v, %v", name, problems, err)
		}
	}
	for _, d := range Definitions() {
		if !found[d.Name] {
			t.Errorf("no sample has the metric %s", d.Name)
		}
	}
}

// compare compares a file with what it must be, or with -update writes it.
func compare(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil { //nolint:gosec // All may read it.
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file) //nolint:gosec // It is of this repository.
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), want); diff != "" {
		t.Errorf("run go test ./internal/metrics -update, and review the difference of %s: -have, +want:\n%s", file, diff)
	}
}

// TestPage compares the table of docs/monitoring.md with the metrics. go test ./internal/metrics
// -update writes it.
func TestPage(t *testing.T) {
	const page, begin = "../../docs/monitoring.md", "| metric | labels | of | meaning |\n| --- | --- | --- | --- |\n"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, more := strings.Cut(rest, "\n\n")
	if !ok || !more {
		t.Fatal("docs/monitoring.md must have the table of metrics")
	}
	var rows []string
	code := func(names []string) string {
		if len(names) == 0 {
			return ""
		}

		return "`" + strings.Join(names, "`, `") + "`"
	}
	for _, d := range Definitions() {
		rows = append(rows, fmt.Sprintf("| %#q | %s | %s | %s |", d.Name, code(d.Labels), code(d.Of), strings.TrimSuffix(d.Help, ".")))
	}
	compare(t, page, before+begin+strings.Join(rows, "\n")+"\n\n"+after)
}
