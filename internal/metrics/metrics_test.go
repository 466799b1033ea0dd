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

func samples() map[string]func() ([]byte, error) {
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

	return map[string]func() ([]byte, error){
		"validation": func() ([]byte, error) { return Report(validation) },
		"inspection": func() ([]byte, error) { return Report(inspection) },
		"hostile":    func() ([]byte, error) { return Report(hostile) },
	}
}

// TestGolden compares the metrics with reviewed files. After a change run go test ./internal/metrics
// -update and review the difference.
func TestGolden(t *testing.T) {
	for name, sample := range samples() {
		got, err := sample()
		if err != nil {
			t.Fatal(err)
		}
		file := "testdata/" + name + ".txt"
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file) //nolint:gosec // It is in testdata.
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: run go test ./internal/metrics -update, and review the difference: -want, +got:\n%s", name, diff)
		}
	}
}

// TestReaders reads the metrics as a Pushgateway and a textfile collector do.
func TestReaders(t *testing.T) {
	found := map[string]bool{}
	for name, sample := range samples() {
		text, err := sample()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), "\n# EOF\n") != 1 || !bytes.HasSuffix(text, []byte("\n# EOF\n")) {
			t.Errorf("%s must end with its only # EOF, got:\n%s", name, text)
		}
		p := expfmt.NewTextParser(model.LegacyValidation)
		families, err := p.TextToMetricFamilies(bytes.NewReader(text))
		if err != nil {
			t.Errorf("%s must be readable as the text format of Prometheus: %v", name, err)
		}
		for family := range families {
			found[family] = true
		}
		problems, err := promlint.New(bytes.NewReader(text)).Lint()
		if err != nil || len(problems) > 0 {
			t.Errorf("%s must follow the conventions of Prometheus: %v, %v", name, problems, err)
		}
	}
	for _, d := range Definitions() {
		if !found[d.Name] {
			t.Errorf("no sample has the metric %s", d.Name)
		}
	}
}

const page = "../../docs/monitoring.md"

// TestPage compares the table of docs/monitoring.md with the metrics. go test ./internal/metrics
// -update writes it.
func TestPage(t *testing.T) {
	const begin, end = "| metric | labels | of | meaning |\n| --- | --- | --- | --- |\n", "\n\n"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	rows, after, more := strings.Cut(rest, end)
	if !ok || !more {
		t.Fatal("docs/monitoring.md must have the table of metrics")
	}
	var want []string
	code := func(names []string) string {
		if len(names) == 0 {
			return ""
		}

		return "`" + strings.Join(names, "`, `") + "`"
	}
	for _, d := range Definitions() {
		want = append(want, fmt.Sprintf("| %#q | %s | %s | %s |", d.Name, code(d.Labels), code(d.Of), strings.TrimSuffix(d.Help, ".")))
	}
	if *update {
		rows = strings.Join(want, "\n")
		if err := os.WriteFile(page, []byte(before+begin+rows+end+after), 0o644); err != nil { //nolint:gosec // A page may be read by all.
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), rows); diff != "" {
		t.Errorf("docs/monitoring.md must list the metrics; run go test ./internal/metrics -update: -want, +got:\n%s", diff)
	}
}
