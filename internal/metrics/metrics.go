// Package metrics writes the numbers of a report for Prometheus, as OpenMetrics text. It has gauges
// only, without timestamps of samples, so that a Pushgateway and a textfile collector read the same
// text. Only hooks and the printer import it. Start reading at Report.
package metrics

import (
	"bytes"
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
	g, registry := gauges{}, prometheus.NewRegistry()
	for _, d := range Definitions() {
		g[d.Name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, d.Labels)
		registry.MustRegister(g[d.Name])
	}
	g.setTime(reportTime, r.Time, command)
	for role, n := range map[string]int{"claim": r.Summary.Claims, "xr": r.Summary.XRs, "composed": r.Summary.Composed, "managed": r.Summary.Managed} {
		g.of(objects, command, role).Set(float64(n))
	}
	g.of(composed, command).Set(float64(r.Summary.Adopted))
	g.setHolds(r, command)
	for _, p := range r.Problems {
		g.of(problems, command, string(p.Code), string(p.Severity)).Inc()
	}
	if command == Inspect {
		g.setUnsafe(r)
	}
	if last := r.LastAdoption; last != nil && last.Started != nil && last.Completed != nil {
		g.of(adoptionDuration).Set(last.Completed.Sub(*last.Started).Seconds())
		g.setTime(adoptionTime, *last.Completed)
	}

	return text(registry)
}

// gauges are the metric families by name.
type gauges map[string]*prometheus.GaugeVec

// of returns a gauge. The values of labels can be of any origin: the library refuses those that are
// not UTF-8.
func (g gauges) of(name string, labels ...string) prometheus.Gauge { //nolint:ireturn // The library has no other type.
	for n := range labels {
		labels[n] = strings.ToValidUTF8(labels[n], "\uFFFD")
	}

	return g[name].WithLabelValues(labels...)
}

func (g gauges) setTime(name string, at time.Time, labels ...string) {
	g.of(name, labels...).Set(float64(at.UnixMilli()) / float64(time.Second/time.Millisecond))
}

// setHolds counts each held object once, also if several trees have it.
func (g gauges) setHolds(r *report.Report, command string) {
	type group struct{ kind, reason string }
	oldest, seen := map[group]time.Time{}, map[xp.ID]bool{}
	for n := range report.All(r.Trees...) {
		if n.Hold == nil || seen[n.ID()] {
			continue
		}
		seen[n.ID()] = true
		of := group{n.GroupVersionKind().GroupKind().String(), string(holdCode(n.Problems))}
		g.of(held, command, of.kind, of.reason).Inc()
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
func (g gauges) setUnsafe(r *report.Report) {
	for _, code := range []reason.Code{reason.IdentityMissing, reason.CreatePending} {
		g.of(unsafe, string(code)).Set(0)
		for _, p := range r.Problems {
			if p.Severity == report.Error && p.Code == code {
				g.of(unsafe, string(code)).Inc()
			}
		}
	}
}

// text returns the metrics of a registry, or an error if one is missing.
func text(registry *prometheus.Registry) ([]byte, error) {
	families, err := registry.Gather()
	if err != nil {
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
