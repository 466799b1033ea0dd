// Package metrics writes the numbers of a report for Prometheus, as OpenMetrics text. It has gauges
// only, without timestamps of samples, so that a Pushgateway and a textfile collector read the same
// text. Only hooks and the printer import it. Start reading at Report.
package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Definition describes a metric family. All families are gauges.
type Definition struct {
	Name   string
	Help   string
	Labels []string
	// Of are the commands that print it.
	Of []string
}

// Commands, as the label command has them.
const (
	Validate = "validate"
	Inspect  = "inspect"
)

// Names of metric families. Alert rules and dashboards rely on them.
const (
	reportTime       = "crossplane_restore_report_timestamp_seconds"
	objects          = "crossplane_restore_objects"
	composed         = "crossplane_restore_composed_resources_adopted"
	held             = "crossplane_restore_held_objects"
	oldestHold       = "crossplane_restore_oldest_hold_timestamp_seconds"
	problems         = "crossplane_restore_problems"
	unsafe           = "crossplane_restore_backup_unsafe_managed_resources"
	adoptionDuration = "crossplane_restore_last_adoption_duration_seconds"
	adoptionTime     = "crossplane_restore_last_adoption_timestamp_seconds"
)

// Definitions returns all metric families. No label has the name of an object or namespace: a
// restore can hold thousands of them.
func Definitions() []Definition {
	reports := []string{Validate, Inspect}

	return []Definition{
		{reportTime, "When the command made these metrics.", []string{"command"}, reports},
		{objects, "Claims, XRs, composed resources and MRs; an MR can also be composed.", []string{"command", "role"}, reports},
		{composed, "Composed resources that their XR lists and controls and that are not held.", []string{"command"}, reports},
		{held, "Held objects, by kind and the code of the problem.", []string{"command", "kind", "reason"}, reports},
		{oldestHold, "When the oldest hold on such objects began.", []string{"command", "kind", "reason"}, reports},
		{problems, "Problems and warnings, by code.", []string{"command", "code", "severity"}, reports},
		{unsafe, "MRs of a backup whose external resource is not certain, so that a restore holds them.", []string{"reason"}, []string{Inspect}},
		{adoptionDuration, "How long the newest ended Restore with operations of plugins took.", nil, []string{Validate}},
		{adoptionTime, "When the newest ended Restore with operations of plugins ended.", nil, []string{Validate}},
	}
}

// Report returns the metrics of an inspection or a validation.
func Report(r *report.Report) ([]byte, error) {
	command := Validate
	if r.Kind == report.KindInspection {
		command = Inspect
	}
	g := newGauges()
	g.setTime(reportTime, r.Time, command)
	for role, n := range map[string]int{"claim": r.Summary.Claims, "xr": r.Summary.XRs, "composed": r.Summary.Composed, "managed": r.Summary.Managed} {
		g.set(objects, float64(n), command, role)
	}
	g.set(composed, float64(r.Summary.Adopted), command)
	g.setHolds(r, command)
	for _, p := range r.Problems {
		g.add(problems, command, string(p.Code), string(p.Severity))
	}
	if command == Inspect {
		g.setUnsafe(r)
	}
	if last := r.LastAdoption; last != nil && last.Started != nil && last.Completed != nil {
		g.set(adoptionDuration, last.Completed.Sub(*last.Started).Seconds())
		g.setTime(adoptionTime, *last.Completed)
	}

	return g.text()
}

// gauges are the metric families with their values.
type gauges struct {
	registry *prometheus.Registry
	vectors  map[string]*prometheus.GaugeVec
	err      error
}

func newGauges() *gauges {
	g := &gauges{registry: prometheus.NewRegistry(), vectors: map[string]*prometheus.GaugeVec{}}
	for _, d := range Definitions() {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, d.Labels)
		g.err = errors.Join(g.err, g.registry.Register(v))
		g.vectors[d.Name] = v
	}

	return g
}

// of returns a gauge. The values of labels can be of any origin: the library refuses those that are
// not UTF-8.
func (g *gauges) of(name string, labels ...string) prometheus.Gauge { //nolint:ireturn // The library has no other type.
	for n := range labels {
		labels[n] = strings.ToValidUTF8(labels[n], "\uFFFD")
	}
	gauge, err := g.vectors[name].GetMetricWithLabelValues(labels...)
	if err != nil {
		g.err = errors.Join(g.err, err)

		return prometheus.NewGauge(prometheus.GaugeOpts{})
	}

	return gauge
}

func (g *gauges) set(name string, value float64, labels ...string) {
	g.of(name, labels...).Set(value)
}

func (g *gauges) add(name string, labels ...string) { g.of(name, labels...).Inc() }

func (g *gauges) setTime(name string, at time.Time, labels ...string) {
	g.set(name, float64(at.UnixMilli())/float64(time.Second/time.Millisecond), labels...)
}

// setHolds counts each held object once, also if several trees have it.
func (g *gauges) setHolds(r *report.Report, command string) {
	type group struct{ kind, reason string }
	oldest, seen := map[group]time.Time{}, map[xp.ID]bool{}
	for n := range report.All(r.Trees...) {
		if n.Hold == nil || seen[n.ID()] {
			continue
		}
		seen[n.ID()] = true
		of := group{n.GroupVersionKind().GroupKind().String(), string(holdCode(n.Problems))}
		g.add(held, command, of.kind, of.reason)
		if since, is := oldest[of]; n.Hold.Since != nil && (!is || n.Hold.Since.Before(since)) {
			oldest[of] = *n.Hold.Since
		}
	}
	for of, since := range oldest {
		g.setTime(oldestHold, since, command, of.kind, of.reason)
	}
}

// holdCode returns the code of the problem that a hold is.
func holdCode(codes []reason.Code) reason.Code {
	special := []reason.Code{reason.LeakedHold, reason.Quarantined, reason.HeldByCommand}
	if n := slices.IndexFunc(codes, func(c reason.Code) bool { return slices.Contains(special, c) }); n >= 0 {
		return codes[n]
	}

	return reason.Held
}

// setUnsafe counts the MRs of a backup that a restore holds because it can't know their external
// resource. A count of 0 is written too, so that an alert can compare it.
func (g *gauges) setUnsafe(r *report.Report) {
	for _, code := range []reason.Code{reason.IdentityMissing, reason.CreatePending} {
		g.set(unsafe, 0, string(code))
		for _, p := range r.Problems {
			if p.Severity == report.Error && p.Code == code {
				g.add(unsafe, string(code))
			}
		}
	}
}

// text returns the metrics, or an error if one is missing.
func (g *gauges) text() ([]byte, error) {
	families, err := g.registry.Gather()
	if err := errors.Join(g.err, err); err != nil {
		return nil, fmt.Errorf("cannot collect metrics: %w", err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToOpenMetrics(&b, f); err != nil {
			return nil, fmt.Errorf("cannot write the metric %s: %w", f.GetName(), err)
		}
	}
	if _, err := expfmt.FinalizeOpenMetrics(&b); err != nil {
		return nil, fmt.Errorf("cannot write the end of the metrics: %w", err)
	}

	return b.Bytes(), nil
}
