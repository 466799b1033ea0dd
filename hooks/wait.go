package hooks

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/vmware-tanzu/velero/pkg/label"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	adopted = "adopted"
	// waitInterval is the time between two rounds. Every discoverEvery rounds it runs discovery
	// again: a restore creates CRDs too.
	waitInterval  = 2 * time.Second
	discoverEvery = 5
	waitTimeout   = 10 * time.Minute
)

func newWait(o *options) *cobra.Command {
	w := &wait{options: o, pause: waitInterval, reported: map[string]string{}}
	condition, restore := adopted, ""
	c := &cobra.Command{
		Use:   "wait [NAME|NAMESPACE/NAME...]",
		Short: "Wait until claims and XRs are adopted",
		Long: `Wait returns when the named claims and XRs, or all that it finds, are adopted: no restore holds them any more, and Crossplane has reconciled them
since. At least one must exist, so you can start it before they are restored and before their kinds are served. With -n it reads claims and XRs in that
namespace only, so it needs no more than a Role there with the right to list them.

An object that a user has paused counts as adopted: Crossplane does not reconcile it until the user unpauses it.

It prints on stderr what it waits for, whenever that changes. It exits with 4 at the timeout. Errors of the API server and missing rights don't end it,
because a restore can bring back both.`,
		Example: `  # In an init container: until the claim of this application is adopted
  ` + Name + ` wait orders -n team-a --timeout 15m

  # In a script: until all objects of a Restore are adopted
  ` + Name + ` wait --for=adopted --restore nightly-20261120

  # By label
  ` + Name + ` wait -n team-a -l app=orders`,
		RunE: func(c *cobra.Command, args []string) error {
			if condition != adopted {
				return fmt.Errorf("cannot wait for %q: use %s", condition, adopted)
			}
			if err := w.prepare(args, restore); err != nil {
				return err
			}

			return o.inCluster(c, func(ctx context.Context, cluster *live.Cluster) error {
				w.look = w.lookAt(cluster)

				return w.run(ctx)
			})
		},
	}
	c.Flags().StringVar(&condition, "for", adopted, "what to wait for: adopted")
	c.Flags().DurationVar(&w.timeout, "timeout", waitTimeout, "how long to wait; 0 checks once")
	c.Flags().StringVarP(&w.selector, "selector", "l", "", "only claims and XRs with these labels")
	c.Flags().StringVar(&restore, "restore", "", "only claims and XRs that this Restore has created")
	_ = c.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{adopted}, cobra.ShellCompDirectiveNoFileComp)) // It fails only without the flag.

	return c
}

// A wait holds the arguments of wait and what it has reported.
type wait struct {
	*options

	selector       string
	names          []string
	places         live.Places
	timeout, pause time.Duration
	look           func(ctx context.Context) (live.Roots, error)
	// reported is the last message about each object.
	reported map[string]string
}

func (w *wait) prepare(args []string, restore string) error {
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
	selector, err := labels.Parse(w.selector)
	if err != nil {
		return fmt.Errorf("cannot read the selector: %w", err)
	}
	if restore != "" {
		// Velero shortens longer names to valid label values.
		created, _ := labels.SelectorFromSet(labels.Set{xp.LabelRestore: label.GetValidName(restore)}).Requirements()
		selector = selector.Add(created...)
	}
	w.selector = selector.String()

	return nil
}

func (w *wait) lookAt(cluster *live.Cluster) func(ctx context.Context) (live.Roots, error) {
	looks := 0

	return func(ctx context.Context) (live.Roots, error) {
		if looks%discoverEvery == 0 {
			if err := cluster.Discover(); err != nil {
				return live.Roots{}, err
			}
		}
		looks++

		return cluster.Roots(ctx, w.places, w.selector)
	}
}

// run reads the roots until all are adopted or the time is up.
func (w *wait) run(ctx context.Context) error {
	deadline := time.Now().Add(w.timeout)
	for {
		look, cancel := context.WithTimeout(ctx, max(time.Until(deadline), waitRequest))
		roots, err := w.look(look)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		adopted, pending := w.classify(roots, err)
		w.reportPending(pending)
		if len(pending) == 0 {
			for _, name := range adopted {
				fmt.Fprintln(w.Out, name, "is adopted")
			}

			return nil
		}
		left := time.Until(deadline)
		if left <= 0 {
			return w.timedOut(pending)
		}
		if err := sleep(ctx, min(left, w.pause)); err != nil {
			return err
		}
	}
}

// waitRequest limits one round. A round may run past the deadline.
const waitRequest = 30 * time.Second

// A pending object, or kind, is not adopted or could not be read.
type pending struct {
	what string
	why  reason.Message
	next string
}

func (p pending) String() string { return p.what + ": " + p.why.String() }

// classify returns the adopted objects and the pending ones.
func (w *wait) classify(roots live.Roots, err error) (adopted []string, left []pending) {
	if err != nil {
		return nil, []pending{{what: "the cluster", why: messageOf(err), next: "check whether the API server answers"}}
	}
	found := map[string]bool{}
	for _, u := range roots.Objects {
		r := xp.RefTo(u)
		path := r.Path()
		if len(w.names) > 0 && !slices.Contains(w.names, path) {
			continue
		}
		found[path] = true
		if why, next := adoption.WhyNotAdopted(u); !why.IsZero() {
			left = append(left, pending{what: r.String(), why: why, next: next})
		} else {
			adopted = append(adopted, r.String())
		}
	}
	for _, name := range w.names {
		if !found[name] {
			left = append(left, pending{
				what: name, why: reason.NotFound.Messagef("there is no claim or XR of this name"), next: "check whether it was restored: velero restore describe --details",
			})
		}
	}
	if len(w.names) == 0 && len(found) == 0 {
		left = append(left, pending{
			what: "claims and XRs", why: reason.NotFound.Messagef("there are none here yet"),
			next: "check whether they were restored, and whether their XRD is Established",
		})
	}

	return adopted, append(left, w.unread(roots, len(left) > 0)...)
}

// unread returns a pending entry for each kind that could not be read. A forbidden kind is left out
// if nothing else is pending.
func (w *wait) unread(roots live.Roots, waiting bool) []pending {
	var left []pending
	// An extension API server that is down for good must not block the wait.
	for _, gv := range slices.Sorted(maps.Keys(roots.Unasked)) {
		w.reportChange(gv, reason.NotRead.Messagef("claims and XRs of %s are left out, because it does not report its kinds: %s", gv, roots.Unasked[gv]).String())
	}
	byName := func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) }
	for _, gvk := range slices.SortedFunc(maps.Keys(roots.Unread), byName) {
		err := roots.Unread[gvk]
		p := pending{
			what: gvk.GroupKind().String(), why: messageOf(err),
			next: "docs/validate.md has the required rights; give -n if they are for one namespace",
		}
		if apierrors.IsForbidden(err) && roots.Kinds > 0 && !waiting {
			w.reportChange(p.what, p.what+" is left out, because you may not read it: "+p.why.String())

			continue
		}
		left = append(left, p)
	}

	return left
}

func (w *wait) reportPending(left []pending) {
	for _, p := range left {
		w.reportChange(p.what, "waiting for "+p.String())
	}
}

func (w *wait) reportChange(of, what string) {
	if w.reported[of] != what {
		w.reported[of] = what
		fmt.Fprintln(w.Err, time.Now().UTC().Format(time.RFC3339), what)
	}
}

func (w *wait) timedOut(left []pending) error {
	lines := make([]string, 0, len(left))
	for _, p := range left {
		lines = append(lines, fmt.Sprintf("%s; %s", p, p.next))
	}

	return &exit{code: ExitTimeout, err: reason.TimedOut.Errorf("cannot wait longer than %s, and these are not adopted:", w.timeout), list: lines}
}
