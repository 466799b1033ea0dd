package monitoring

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
)

const (
	example = "../../../example/monitoring/"
	samples = "../../../internal/metrics/testdata/"
)

// made is when the samples were made.
var made = time.Date(2026, time.March, 14, 9, 30, 0, 0, time.UTC)

// rules returns the alerts by name.
func rules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, problems := rulefmt.ParseFile(example+"rules.yaml", false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	found := map[string]rulefmt.Rule{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			found[r.Alert] = r
		}
	}

	return found
}

// read returns a file.
func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	return b
}

// families parses metrics.
func families(t *testing.T, text []byte) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	found, err := p.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}

	return found
}

// scrape stores metrics as Prometheus has them after a scrape at the time.
func scrape(t *testing.T, at time.Time, text []byte) *teststorage.TestStorage {
	t.Helper()
	store := teststorage.New(t)
	scrapeInto(t, store, at, text)

	return store
}

// scrapeInto adds the metrics of a scrape.
func scrapeInto(t *testing.T, store *teststorage.TestStorage, at time.Time, text []byte) {
	t.Helper()
	appender := store.Appender(t.Context())
	for name, family := range families(t, text) {
		for _, m := range family.GetMetric() {
			b := labels.NewScratchBuilder(len(m.GetLabel()) + 1)
			b.Add(model.MetricNameLabel, name)
			for _, l := range m.GetLabel() {
				if l.GetValue() != "" {
					b.Add(l.GetName(), l.GetValue())
				}
			}
			b.Sort()
			value := m.GetGauge().GetValue()
			if m.GetGauge() == nil {
				value = m.GetUntyped().GetValue()
			}
			if _, err := appender.Append(0, b.Labels(), at.UnixMilli(), value); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := appender.Commit(); err != nil {
		t.Fatal(err)
	}
}

// query returns the result of an expression.
func query(t *testing.T, store storage.Queryable, expression string, at time.Time) promql.Vector {
	t.Helper()
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	q, err := engine.NewInstantQuery(t.Context(), store, nil, expression, at)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	result, err := q.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatalf("cannot evaluate %q: %v", expression, err)
	}

	return slices.Clone(result)
}

// healthy are the metrics of a day on which nothing is wrong.
const healthy = `
crossplane_restore_report_timestamp_seconds{command="validate"} 1773480600
crossplane_restore_report_timestamp_seconds{command="inspect"} 1773480600
crossplane_restore_report_timestamp_seconds{command="validate",job="crossplane-restore-drill"} 1773480600
crossplane_restore_objects{command="validate",role="xr"} 12
crossplane_restore_problems{command="validate",code="NotReady",severity="warning"} 1
crossplane_restore_held_objects{command="validate",kind="Order.example.org",reason="Held"} 1
crossplane_restore_oldest_hold_timestamp_seconds{command="validate",kind="Order.example.org",reason="Held"} 1773480000
velero_restore_partial_failure_total{schedule=""} 0
velero_restore_failed_total{schedule=""} 0
velero_restore_started_timestamp_seconds{exported_namespace="velero",name="old"} 1770000000
velero_restore_phase{exported_namespace="velero",name="old",phase="InProgress"} 0
velero_restore_phase{exported_namespace="velero",name="old",phase="Completed"} 1
velero_restore_started_timestamp_seconds{exported_namespace="velero",name="new"} 1773480000
velero_restore_phase{exported_namespace="velero",name="new",phase="InProgress"} 1
`

func TestRules(t *testing.T) {
	alerts := rules(t)
	cases := map[string]struct {
		reason string
		alert  string
		text   string
		after  time.Duration
		want   []map[string]string
	}{
		"LeakedHold": {
			reason: "A hold without a Restore is found once it is an hour old.",
			alert:  "CrossplaneHoldLeaked", text: string(read(t, samples+"validation.txt")),
			want: []map[string]string{{"command": "validate", "kind": "Bucket.example.org", "reason": "LeakedHold"}},
		},
		"Held": {
			reason: "A hold whose Restore is at work is normal for some hours.",
			alert:  "CrossplaneHeldForLong", text: string(read(t, samples+"validation.txt")), after: 4 * time.Hour,
			want: []map[string]string{{"command": "validate", "kind": "Order.example.org", "reason": "Held"}},
		},
		"HeldForAShortTime": {
			reason: "It is not yet worth an alert.",
			alert:  "CrossplaneHeldForLong", text: string(read(t, samples+"validation.txt")),
		},
		"AtRisk": {
			reason: "What two XRs control can be deleted by one of them.",
			alert:  "CrossplaneResourcesAtRisk",
			text:   "crossplane_restore_problems{command=\"validate\",code=\"DeadController\",severity=\"problem\"} 3\n" + healthy,
			want:   []map[string]string{{"code": "DeadController"}},
		},
		"PluginMissing": {
			reason: "Velero was installed again without the plugin.",
			alert:  "CrossplanePluginMissing",
			text:   "crossplane_restore_problems{command=\"validate\",code=\"PluginMissing\",severity=\"warning\"} 1\n" + healthy,
			want:   []map[string]string{{"code": "PluginMissing"}},
		},
		"Unsafe": {
			reason: "The newest backup has MRs whose external resource is not certain.",
			alert:  "CrossplaneBackupUnsafe", text: string(read(t, samples+"inspection.txt")),
			want: []map[string]string{{"reason": "IdentityMissing"}},
		},
		"Overdue": {
			reason: "No drill has passed since yesterday.",
			alert:  "CrossplaneDrillOverdue", text: healthy, after: 27 * time.Hour,
			want: []map[string]string{{"command": "validate", "job": "crossplane-restore-drill"}},
		},
		"Stale": {
			reason: "validate runs each 15 minutes; a backup is inspected once a day, and a drill has its own alert.",
			alert:  "CrossplaneRestoreMetricsStale", text: healthy, after: 3 * time.Hour,
			want: []map[string]string{{"command": "validate"}},
		},
		"AllStale": {
			reason: "After more than a day the backup's metrics are out of date too.",
			alert:  "CrossplaneRestoreMetricsStale", text: healthy, after: 27 * time.Hour,
			want: []map[string]string{{"command": "inspect"}, {"command": "validate"}},
		},
		"Never": {
			reason: "A Job that has never run has no old metrics either.",
			alert:  "CrossplaneRestoreMetricsStale", text: "up 1\n",
			want: []map[string]string{{"command": "validate"}},
		},
		"RestorePartiallyFailed": {
			reason: "The counter of a schedule appears with its first Restore.",
			alert:  "VeleroRestoreIncomplete", text: healthy + "velero_restore_partial_failure_total{schedule=\"nightly\"} 1\n",
			want: []map[string]string{{"schedule": "nightly"}},
		},
		"RestoreFailed": {
			reason: "A Restore that failed counts, too.",
			alert:  "VeleroRestoreIncomplete", text: healthy + "velero_restore_failed_total{schedule=\"nightly\"} 1\n",
			want: []map[string]string{{"schedule": "nightly"}},
		},
		"RestoreWaits": {
			reason: "Only the Restore that has not ended is of interest.",
			alert:  "VeleroRestoreWaitsForLong", text: healthy, after: 2 * time.Hour,
			want: []map[string]string{{"exported_namespace": "velero", "name": "new"}},
		},
	}
	covered := map[string]bool{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := made.Add(tc.after)
			var got []map[string]string
			for _, s := range query(t, scrape(t, at, []byte(tc.text)), alerts[tc.alert].Expr, at) {
				m := s.Metric.Map()
				delete(m, model.MetricNameLabel)
				got = append(got, m)
			}
			slices.SortFunc(got, func(a, b map[string]string) int {
				return strings.Compare(a["command"], b["command"])
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s fires for others: -want, +got:\n%s", tc.reason, tc.alert, diff)
			}
		})
		if len(tc.want) > 0 {
			covered[tc.alert] = true
		}
	}
	for name := range maps.Keys(alerts) {
		if !covered[name] {
			t.Errorf("no case lets %s fire", name)
		}
		if got := query(t, scrape(t, made, []byte(healthy)), alerts[name].Expr, made); len(got) > 0 {
			t.Errorf("%s fires although nothing is wrong: %s", name, got)
		}
	}
}

// Velero's counters grow. A failure of long ago is no alert any more.
func TestRulesForCounters(t *testing.T) {
	store := teststorage.New(t)
	for after := time.Duration(0); after <= 4*time.Hour; after += 5 * time.Minute {
		n := 1
		if after >= 2*time.Hour {
			n = 2
		}
		scrapeInto(t, store, made.Add(after), fmt.Appendf(nil, "velero_restore_partial_failure_total{schedule=\"nightly\"} %d\n", n))
	}
	alert := rules(t)["VeleroRestoreIncomplete"].Expr
	for after, want := range map[time.Duration]int{0: 1, 115 * time.Minute: 0, 2 * time.Hour: 1, 4 * time.Hour: 0} {
		if got := query(t, store, alert, made.Add(after)); len(got) != want {
			t.Errorf("after %s it fires %d times, not %d: %s", after, len(got), want, got)
		}
	}
}
