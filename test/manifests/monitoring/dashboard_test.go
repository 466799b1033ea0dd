package monitoring

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/vmware-tanzu/velero/pkg/metrics"
)

type dashboard struct {
	Panels []struct {
		ID          int    `json:"id"`
		Title       string `json:"title"`
		Description string `json:"description"`
		GridPos     struct {
			X int `json:"x"`
			Y int `json:"y"`
			W int `json:"w"`
			H int `json:"h"`
		} `json:"gridPos"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

// restoring are metrics of kube-state-metrics about a Restore under way.
const restoring = `
velero_restore_operations_attempted{exported_namespace="velero",name="new"} 10
velero_restore_operations_completed{exported_namespace="velero",name="new"} 4
`

// sampled returns metrics of the commands: a text for each sample.
func sampled(t *testing.T) [][]byte {
	t.Helper()
	files, err := filepath.Glob(samples + "*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("cannot find samples: %v", err)
	}
	var texts [][]byte
	for _, file := range files {
		texts = append(texts, read(t, file))
	}

	return texts
}

// veleros are the metrics of Velero's server, which it registers once in a process.
var veleros = sync.OnceValues(func() ([]*dto.MetricFamily, error) {
	m := metrics.NewServerMetrics()
	m.RegisterAllMetrics()
	m.InitSchedule("nightly")

	return prometheus.DefaultGatherer.Gather()
})

// names returns the metrics that there are: those of the commands, of Velero and of
// kube-state-metrics.
func names(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, text := range sampled(t) {
		for name := range families(t, text) {
			found[name] = true
		}
	}
	server, err := veleros()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range server {
		found[family.GetName()] = true
	}
	for _, r := range stateMetrics(t) {
		for _, m := range r.Metrics {
			found[r.MetricNamePrefix+"_"+m.Name] = true
		}
	}

	return found
}

// unknown returns the metrics of an expression that there are not.
func unknown(t *testing.T, expression string, names map[string]bool) []string {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		t.Fatalf("cannot parse %q: %v", expression, err)
	}
	var missing []string
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok && !names[s.Name] {
			missing = append(missing, s.Name)
		}

		return nil
	})

	return missing
}

func TestDashboard(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal(read(t, example+"dashboard.json"), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) == 0 {
		t.Fatal("the dashboard has no panels")
	}
	names := names(t)
	var stores []*teststorage.TestStorage
	for _, text := range append(sampled(t), []byte(restoring), []byte(healthy)) {
		stores = append(stores, scrape(t, made, text))
	}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d %q needs a title, a description and a query", p.ID, p.Title)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" || at[0] >= 24 {
					t.Fatalf("panel %q is over %q, or beyond the 24 columns, at %v", p.Title, taken[at], at)
				}
				taken[at] = p.Title
			}
		}
		for _, target := range p.Targets {
			if missing := unknown(t, target.Expr, names); len(missing) > 0 {
				t.Errorf("panel %q asks for metrics that nothing makes: %v", p.Title, missing)
			}
			shows := func(store *teststorage.TestStorage) bool { return len(query(t, store, target.Expr, made)) > 0 }
			if !slices.ContainsFunc(stores, shows) {
				t.Errorf("panel %q shows nothing for %q", p.Title, target.Expr)
			}
		}
	}
	for name, r := range rules(t) {
		if missing := unknown(t, r.Expr, names); len(missing) > 0 {
			t.Errorf("the alert %s asks for metrics that nothing makes: %v", name, missing)
		}
	}
}
