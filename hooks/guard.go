package hooks

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/guard"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func newGuard(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "guard on|off|status",
		Short: "Let only Velero and Crossplane create claims and XRs, until a restore is over",
		Long: `If Flux or Argo CD creates an XR before a restore comes to it, the XR gets new cloud resources, and nothing manages the old ones. While the guard is
up, only Velero and Crossplane can create claims and XRs. It is a ValidatingAdmissionPolicy with its binding, so it needs Kubernetes v1.30 or later. You don't
have to suspend anything: when you take it down, Flux continues, and so does Argo CD as long as its retries last (docs/gitops.md).`,
		Example: `  # Before a restore, also into an empty cluster
  ` + Name + ` guard on --backup nightly.tar.gz

  # After the restore
  ` + Name + ` wait --restore nightly-20261120 --guard-off`,
		Args: knownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newGuardOn(o), newGuardOff(o), newGuardStatus(o))

	return c
}

// rejectNamespace fails if --namespace is given: there is one guard for all namespaces.
func (o *options) rejectNamespace(*cobra.Command, []string) error {
	if o.namespace != "" {
		return fmt.Errorf("cannot show the guard of the namespace %s alone: there is one guard for all namespaces", o.namespace)
	}

	return nil
}

const (
	// guardTimeout is how long the API server may take to enforce the guard. It takes about a
	// second. guardInterval is the time between two probes.
	guardTimeout  = 20 * time.Second
	guardInterval = 200 * time.Millisecond
)

// A prober waits until the API server treats new objects as wanted.
type prober struct {
	timeout, pause time.Duration
	probe          func(ctx context.Context) (live.Probe, error)
}

func proberOf(cluster *live.Cluster) prober {
	return prober{timeout: guardTimeout, pause: guardInterval, probe: cluster.Probe}
}

// await probes until the result is the wanted one. At the timeout it returns the last result.
func (p prober) await(ctx context.Context, wanted live.Probe) (live.Probe, error) {
	deadline := time.Now().Add(p.timeout)
	for {
		now, err := p.probe(ctx)
		if err != nil || now == wanted || time.Now().After(deadline) {
			return now, err
		}
		if err := sleep(ctx, p.pause); err != nil {
			return now, err
		}
	}
}

// guardReport is the output of guard. Fields may be added, never changed or removed.
type guardReport struct {
	Up bool `json:"up"`
	// Does is what happens to objects that other users create: refused, paused or admitted; "" if
	// unknown.
	Does  live.Probe `json:"does,omitempty"`
	Since *time.Time `json:"since,omitempty"`
	By    string     `json:"by,omitempty"`
	// Namespaces are the guarded ones; empty means all.
	Namespaces []string `json:"namespaces"`
	Kinds      []string `json:"kinds"`
	Users      []string `json:"users"`
	// Uncovered are XRD kinds that are not guarded. ClusterScoped are the cluster-scoped ones among
	// these if only some namespaces are guarded.
	Uncovered     []string `json:"uncovered"`
	ClusterScoped []string `json:"clusterScoped"`
	// Changed are the kinds of the guard's objects that were changed or deleted.
	Changed []string `json:"changed"`
	// Paused are the claims and XRs that the guard admitted paused.
	Paused []string `json:"paused"`
}

// reportOf reads the guard. It does not set Does.
func reportOf(ctx context.Context, cluster *live.Cluster) (guardReport, error) {
	s, err := cluster.Guard(ctx)
	if err != nil {
		return guardReport{}, err
	}
	r := guardReport{
		Up: s.Up, By: s.CreatedBy, Namespaces: nonNil(s.Namespaces), Kinds: nonNil(s.Kinds), Users: nonNil(s.Users), Changed: nonNil(s.Changed),
		Uncovered: []string{}, ClusterScoped: []string{}, Paused: []string{},
	}
	if !s.Up {
		return r, nil
	}
	r.Since = &s.Made
	xrds, err := cluster.Definitions(ctx)
	if err != nil {
		return r, err
	}
	for _, xrd := range xrds {
		for _, kind := range guard.KindsOf(xrd) {
			switch {
			case s.Covers(kind.GroupResource):
			case len(s.Namespaces) > 0 && !kind.Namespaced:
				r.ClusterScoped = append(r.ClusterScoped, kind.String())
			default:
				r.Uncovered = append(r.Uncovered, kind.String())
			}
		}
	}
	slices.Sort(r.ClusterScoped)
	slices.Sort(r.Uncovered)
	if s.Paused {
		paused, err := cluster.PausedByGuard(ctx)
		if err != nil {
			return r, err
		}
		for _, u := range paused {
			r.Paused = append(r.Paused, xp.String(u))
		}
	}

	return r, nil
}

// nonNil makes an empty list encode as [] in JSON.
func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}

	return list
}

// isEffective reports whether the guard is up and covers everything.
func (r guardReport) isEffective() bool {
	return r.Up && r.Does != live.Admitted && len(r.Uncovered) == 0 && len(r.Changed) == 0
}

func (r guardReport) table() []byte {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name string, values ...string) {
		for i, v := range values {
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(t, "%s\t%s\n", name, reason.Clean(v))
		}
	}
	if !r.Up {
		row("GUARD", "down: everybody can create claims and XRs")
	} else {
		row("GUARD", fmt.Sprintf("up since %s, put up by %s", r.Since.UTC().Format(time.RFC3339), cmp.Or(r.By, "an unknown user")))
		row("OTHERS", r.effect())
		row("WHERE", cmp.Or(strings.Join(r.Namespaces, ", "), "everywhere"))
		row("KINDS", r.Kinds...)
		row("ALLOWED", r.Users...)
	}
	row("NOT GUARDED", r.Uncovered...)
	row("CLUSTER-SCOPED", r.ClusterScoped...)
	row("CHANGED", r.Changed...)
	row("PAUSED", r.Paused...)
	_ = t.Flush() // A buffer never fails.
	for _, next := range r.next() {
		fmt.Fprintf(&b, "next: %s\n", next)
	}

	return b.Bytes()
}

// effect describes what happens to objects that other users create.
func (r guardReport) effect() string {
	switch r.Does {
	case live.Refused:
		return "the API server refuses what they create"
	case live.Paused:
		return "the API server pauses what they create"
	case live.Admitted:
		return "the API server admits what they create: it does not enforce the guard"
	default:
		return "unknown: you may not probe the guard"
	}
}

func (r guardReport) next() []string {
	var next []string
	switch {
	case len(r.Changed) > 0:
		next = append(next, reason.GuardChanged.Messagef("another writer changed the guard; put it up again: %s guard on", Name).String())
	case r.Up && r.Does == live.Admitted:
		next = append(next, reason.GuardNotEnforced.Messagef("put the guard up again: %s guard on", Name).String())
	}
	if len(r.Uncovered) > 0 {
		next = append(next, reason.KindNotGuarded.Messagef("guard all kinds: %s guard on", Name).String())
	}
	if r.Up {
		next = append(next, "when the restore is over: "+Name+" guard off")
	}

	return next
}
