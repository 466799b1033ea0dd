package hooks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/vmware-tanzu/velero/pkg/label"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	adopted = "adopted"
	// waitInterval is the time between two rounds. Every discoverEvery rounds it runs discovery
	// again: a restore creates CRDs too.
	waitInterval  = 2 * time.Second
	discoverEvery = 5
	waitTimeout   = 10 * time.Minute
	waitSettle    = 30 * time.Second
	// waitRequest limits one round. A round may run past the deadline.
	waitRequest = 30 * time.Second
)

func newWait(o *options) *cobra.Command {
	w := &wait{options: o, pause: waitInterval, settle: waitSettle}
	condition := adopted
	c := &cobra.Command{
		Use:   "wait [NAME|NAMESPACE/NAME...]",
		Short: "Wait until claims and XRs are adopted",
		Long: `Wait returns when the named claims and XRs, or all that it finds, are adopted: no restore holds them any more, and Crossplane has reconciled them
since. At least one must exist, so you can start it before they are restored and before their kinds are served. With -n it reads claims and XRs in that
namespace only, so it needs no more than a Role there with the right to list them.

With --restore it also waits until that Restore is over. If then something is not adopted, or the Restore has failed, it prints how the Restore has ended
and what stays held, and exits with 3. A Restore that does not exist is an error. In a hook of the Restore name the objects instead: the Restore waits for
its hooks.

An object that a user has paused counts as adopted: Crossplane does not reconcile it until the user unpauses it.

It shows on stderr how far it is and what it waits for: with a bar on a terminal, and otherwise with a line for each change. It exits with 4 at the timeout.
Errors of the API server and missing rights don't end it, because a restore can bring back both. With -o it prints at its end the report of validate for
what it has waited for, which needs the rights of validate; it exits with 3 if that has problems.`,
		Example: `  # In an init container: until the claim of this application is adopted
  ` + Name + ` wait orders -n team-a --timeout 15m

  # In a script: until all objects of a Restore are adopted
  ` + Name + ` wait --for=adopted --restore nightly-20261120

  # The same, and then validate it
  ` + Name + ` wait --restore nightly-20261120 -o table

  # By label
  ` + Name + ` wait -n team-a -l app=orders`,
		RunE: func(c *cobra.Command, args []string) error {
			if condition != adopted {
				return fmt.Errorf("cannot wait for %q: use %s", condition, adopted)
			}
			if err := w.prepare(args); err != nil {
				return err
			}

			return o.inCluster(c, func(ctx context.Context, from *cluster.Cluster) error {
				w.look = func(ctx context.Context) (cluster.Roots, error) { return w.roots(ctx, from) }
				w.readRestore = func(ctx context.Context) (*report.Restore, error) {
					return from.RestoreNamed(ctx, o.velero, w.restore)
				}
				w.validate = func(ctx context.Context, names []string) (*report.Report, error) {
					return (&validation{options: o, restore: w.restore, names: names, pause: recheckAfter, cluster: from}).validateStable(ctx)
				}

				return w.run(ctx)
			})
		},
	}
	c.Flags().StringVar(&condition, "for", adopted, "what to wait for: adopted")
	c.Flags().DurationVar(&w.timeout, "timeout", waitTimeout, "how long to wait; 0 checks once")
	c.Flags().StringVarP(&w.selector, "selector", "l", "", "only claims and XRs with these labels")
	c.Flags().StringVar(&w.restore, "restore", "", "only claims and XRs that this Restore has created")
	w.out.addTo(c)
	w.out.format = ""
	f := c.Flags().Lookup("output")
	f.DefValue, f.Usage = "", "print at the end the report of validate, as "+f.Usage
	_ = c.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{adopted}, cobra.ShellCompDirectiveNoFileComp)) // It fails only without the flag.

	return c
}

// A wait holds the arguments of wait.
type wait struct {
	*options

	out      output
	selector string
	// labelled is set if the user has given a selector.
	labelled       bool
	restore        string
	names          []string
	places         cluster.Places
	timeout, pause time.Duration
	// settle is how long claims and XRs have to be reconciled after the Restore has ended.
	settle time.Duration

	look        func(ctx context.Context) (cluster.Roots, error)
	readRestore func(ctx context.Context) (*report.Restore, error)
	validate    func(ctx context.Context, names []string) (*report.Report, error)
	// looks counts the looks since the last discovery.
	looks int
}

func (w *wait) prepare(args []string) error {
	if w.timeout < 0 {
		return fmt.Errorf("cannot wait for %s", w.timeout)
	}
	var err error
	if w.names, err = w.parseNames(args); err != nil {
		return err
	}
	if w.namespace != "" {
		w.places.Namespaces = []string{w.namespace}
	}
	for _, name := range w.names {
		namespace, _, ok := strings.Cut(name, "/")
		if !ok {
			w.places.Cluster = true
		} else if !slices.Contains(w.places.Namespaces, namespace) {
			w.places.Namespaces = append(w.places.Namespaces, namespace)
		}
	}
	w.labelled = w.selector != ""
	selector, err := labels.Parse(w.selector)
	if err != nil {
		return fmt.Errorf("cannot read the selector: %w", err)
	}
	if w.restore != "" {
		// Velero shortens longer names to valid label values.
		created, _ := labels.SelectorFromSet(labels.Set{xp.LabelRestore: label.GetValidName(w.restore)}).Requirements()
		selector = selector.Add(created...)
	}
	w.selector = selector.String()

	return nil
}

func (w *wait) roots(ctx context.Context, from *cluster.Cluster) (cluster.Roots, error) {
	if w.looks%discoverEvery == 0 {
		if err := from.Discover(); err != nil {
			return cluster.Roots{}, err
		}
	}
	w.looks++

	return from.Roots(ctx, w.places, w.selector)
}

// run waits, and prints the result.
func (w *wait) run(ctx context.Context) error {
	f, err := w.follow(ctx)
	switch {
	case ctx.Err() != nil:
		return reason.Interrupted.Errorf("interrupted; the restore goes on, and this command has changed nothing. Run it again to go on waiting")
	case f.absent:
		return err
	case w.out.format != "":
		return w.printReport(ctx, f, err)
	case err == nil:
		for _, name := range f.adopted {
			fmt.Fprintln(w.Out, name, "is adopted")
		}
	}

	return err
}

// printReport prints the report of validate, unless nothing has the labels that were asked for.
func (w *wait) printReport(ctx context.Context, f findings, failure error) error {
	names := w.names
	if w.labelled && len(names) == 0 {
		if names = f.paths; len(names) == 0 {
			return failure
		}
	}
	r, err := w.validate(ctx, names)
	if err == nil {
		err = w.print(r, w.out)
	}
	switch {
	case err == nil && failure == nil:
		return exitFor(r.Failing(false))
	case err != nil && failure != nil:
		fmt.Fprintln(w.Err, "warning: there is no report:", messageOf(err))
	case err != nil:
		return err
	}

	return failure
}

// follow looks until all is adopted, the Restore has ended, the time is up or ctx is done.
func (w *wait) follow(ctx context.Context) (findings, error) {
	show := w.view()
	deadline := time.Now().Add(w.timeout)
	var ended time.Time
	for {
		look, cancel := context.WithTimeout(ctx, max(time.Until(deadline), waitRequest))
		f := w.find(look)
		cancel()
		if ctx.Err() != nil {
			return f, ctx.Err()
		}
		if f.absent {
			return f, reason.NotFound.Errorf("there is no Restore %s/%s, and nothing that it has created; velero restore get lists them", w.velero, w.restore)
		}
		show(f)
		isDone, isLate := len(f.pending) == 0, !time.Now().Before(deadline)
		hasEnded := f.hasEnded()
		canChange := slices.ContainsFunc(f.pending, func(p pending) bool { return !p.stays })
		hasSettled := !ended.IsZero() && (!canChange || time.Since(ended) >= w.settle)
		switch {
		case hasEnded && (isDone || isLate || hasSettled):
			return f, w.howEnded(f)
		case isDone:
			return f, nil
		case isLate:
			late := reason.TimedOut.Errorf("cannot wait longer than %s, and these are not adopted:", w.timeout)

			return f, &exit{code: ExitTimeout, err: late, list: nextSteps(f.pending)}
		case hasEnded && ended.IsZero():
			ended, w.looks = time.Now(), 0 // The Restore can have created kinds since the last discovery.
		}
		if err := sleep(ctx, min(time.Until(deadline), w.pause)); err != nil {
			return f, err
		}
	}
}

// nextSteps returns a line for each pending object.
func nextSteps(left []pending) []string {
	lines := make([]string, 0, len(left))
	for _, p := range left {
		lines = append(lines, fmt.Sprintf("%s; %s", p, p.next))
	}

	return lines
}
