package hooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/exchange"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	exchangeTimeout = 10 * time.Minute
	// exchangeInterval is the time between two rounds while objects are being deleted.
	exchangeInterval = 250 * time.Millisecond
	// pauseTimeout is how long Crossplane may take to report a pause in the XR's status. After a
	// failed reconcile it backs off for up to a minute.
	pauseTimeout = 2 * time.Minute
)

const exchangeLong = `Exchange is for an XR or claim that Flux or Argo CD created before a restore came to it, and for which Crossplane composed new resources.
These have new external resources, and nothing manages the old ones. Exchange deletes the new resources, so that the next restore gives the XR its resources
of the backup.

It first lists what it deletes, each managed resource with its external-name. An external resource stays if another object in the backup or in this cluster
manages it. It also lists what the restore creates. Then it asks, and deletes only what it listed. It refuses what it can't do safely, and prints why.

Then it pauses the XR, deletes the listed objects, and removes them from the XR when they are gone. The XR stays paused until a restore adopts it. Flux and
Argo CD may apply it meanwhile. You can interrupt it at any time: run it again to continue, or with --abandon to let the XR continue as it is. Crossplane then
composes deleted resources again.

It exits with 0 if the XRs are ready for the restore, 3 if it refused one, 4 if an object is not gone at the timeout, and 2 if it can't ask: without a
terminal it needs --yes. See docs/gitops.md.`

const exchangeExample = `  # What would it delete, and what would the restore create?
  velero backup download nightly -o nightly.tar.gz
  ` + Name + ` exchange team-a/shop --backup nightly.tar.gz --dry-run

  # Exchange, then restore
  ` + Name + ` exchange team-a/shop --backup nightly.tar.gz
  velero restore create --from-backup nightly --wait

  # End an exchange
  ` + Name + ` exchange team-a/shop --abandon`

// An exchangeRun is one run of exchange: its arguments and what it reads.
type exchangeRun struct {
	*options

	names                 []string
	backup, kind          string
	dryRun, yes, abandon  bool
	timeout, pause, await time.Duration

	cluster *live.Cluster
	archive *archive.Backup
}

func newExchange(o *options) *cobra.Command {
	e := &exchangeRun{options: o, pause: exchangeInterval, await: pauseTimeout}
	c := &cobra.Command{
		Use:     "exchange [NAMESPACE/]NAME...",
		Short:   "Delete what an XR has composed again, so that a restore gives it its old resources",
		Long:    exchangeLong,
		Example: exchangeExample,
		Args:    someNames,
		RunE: func(c *cobra.Command, args []string) error {
			if err := e.prepare(args); err != nil {
				return err
			}

			return o.inCluster(c, func(ctx context.Context, cluster *live.Cluster) error {
				e.cluster = cluster

				return e.run(ctx)
			})
		},
	}
	c.Flags().StringVar(&e.backup, "backup", "", `the backup: a file from "velero backup download", or - for stdin`)
	c.Flags().StringVar(&e.kind, "kind", "", "the kind, if XRs or claims of several kinds have the name")
	c.Flags().BoolVar(&e.dryRun, "dry-run", false, "list what it would delete and what a restore would create, and change nothing")
	c.Flags().BoolVarP(&e.yes, "yes", "y", false, "don't ask")
	c.Flags().BoolVar(&e.abandon, "abandon", false, "end the exchange and let the XR continue as it is")
	c.Flags().DurationVar(&e.timeout, "timeout", exchangeTimeout, "how long to wait until the deleted objects are gone")
	_ = c.MarkFlagFilename("backup", "tar.gz", "tgz") // It fails only without the flag.

	return c
}

func (e *exchangeRun) prepare(args []string) error {
	var err error
	switch e.names, err = e.parseNames(args); {
	case err != nil:
		return err
	case e.backup == "" && !e.abandon:
		return errors.New(`cannot find the composed resources of the backup without --backup, a file from "velero backup download"`)
	case e.timeout < 0:
		return fmt.Errorf("cannot wait for %s", e.timeout)
	case !e.yes && !e.dryRun && !e.abandon && (e.backup == "-" || !isTerminal(e.In)):
		return errors.New("cannot ask: stdin is no terminal; check the list of --dry-run, then give --yes")
	default:
		return nil
	}
}

func (e *exchangeRun) run(ctx context.Context) error {
	if e.abandon {
		return e.abandonAll(ctx)
	}
	var err error
	if e.archive, err = e.read(ctx, e.backup); err != nil {
		return err
	}
	if !e.dryRun {
		if err := e.refuseBusy(ctx); err != nil {
			return err
		}
	}
	refused := 0
	for _, name := range e.names {
		ok, err := e.exchange(ctx, name)
		if err != nil {
			return err
		}
		if !ok {
			refused++
		}
	}

	return exitFor(refused)
}

// refuseBusy fails while a Restore is under way: it may be restoring the same objects.
func (e *exchangeRun) refuseBusy(ctx context.Context) error {
	restores, err := e.underWay(ctx, e.cluster)
	if err != nil {
		return fmt.Errorf("cannot check whether a Restore is running: %w", err)
	}
	if len(restores) > 0 {
		return reason.RestoreRunning.Errorf("cannot exchange anything while the Restore %s is running; wait until it is over", restores[0].Name)
	}

	return nil
}

// exchange exchanges one XR or claim. It returns false if the plan refuses it.
func (e *exchangeRun) exchange(ctx context.Context, name string) (bool, error) {
	saved, err := e.find(name)
	if err != nil {
		return false, err
	}
	root, err := e.cluster.Find(ctx, xp.RefTo(saved))
	if err != nil {
		return false, err
	}
	if root == nil {
		fmt.Fprintf(e.Out, "%s is not in this cluster, so there is nothing to exchange. Restore it.\n", xp.String(saved))

		return true, nil
	}
	plan, err := e.plan(ctx, root, saved)
	if err != nil {
		return false, err
	}
	e.list(plan)
	switch {
	case len(plan.Refused) > 0:
		return false, nil
	case plan.OnlyRestoreLeft, e.dryRun:
		return true, nil
	}
	agreed, err := ask(ctx, e.options, e.yes, fmt.Sprintf("Delete %s permanently, and %s in all?",
		printer.Counted(len(plan.Deletes()), "external resource"), printer.Counted(len(plan.Items), "object")))
	if err != nil {
		return false, err
	}
	if !agreed {
		return false, reason.NotConfirmed.Errorf("cannot exchange %s: you did not confirm it, and nothing was changed", plan.Root)
	}

	return true, e.execute(ctx, root, saved, plan)
}

// abandonAll takes the pauses off the named XRs and claims and leaves them as they are.
func (e *exchangeRun) abandonAll(ctx context.Context) error {
	roots, err := e.cluster.Roots(ctx, live.Places{}, "")
	if err != nil {
		return err
	}
	for gvk, err := range roots.Unread {
		return fmt.Errorf("cannot find the exchanged %s: %w", gvk.Kind, err)
	}
	for _, name := range e.names {
		found := false
		for _, u := range roots.Objects {
			if xp.RefTo(u).Path() != name || e.kind != "" && u.GetKind() != e.kind {
				continue
			}
			found = true
			if err := e.unpauseAll(ctx, u); err != nil {
				return err
			}
		}
		if !found {
			return reason.NotFound.Errorf("cannot abandon the exchange of %s: the cluster has no claim or XR of this name; add its namespace if it is in one", name)
		}
	}

	return nil
}

// find returns the XR or claim of a name in the backup.
func (e *exchangeRun) find(name string) (*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, i := range e.archive.Items {
		r := i.Ref()
		if r.Path() != name || e.kind != "" && r.Kind != e.kind {
			continue
		}
		if u := i.Object(); xp.IsClaim(u) || xp.IsComposite(u) {
			found = append(found, u)
		}
	}
	switch len(found) {
	case 0:
		return nil, reason.NotFound.Errorf("cannot find %s: the backup %s has no claim or XR of this name", name, source(e.backup))
	case 1:
		return found[0], nil
	default:
		return nil, &exit{
			code: ExitUsage, err: fmt.Errorf("cannot decide between the kinds of %s: give --kind %s or --kind %s", name, found[0].GetKind(), found[1].GetKind()),
		}
	}
}

// plan reads the cluster and the backup and returns what to do.
func (e *exchangeRun) plan(ctx context.Context, root, saved *unstructured.Unstructured) (exchange.Plan, error) {
	var s exchange.Snapshot
	var err error
	if s.Live, err = e.cluster.Tree(ctx, root); err != nil {
		return exchange.Plan{}, err
	}
	objects := objectsOf(e.archive)
	inBackup := func(refs []xp.Ref) (map[xp.ID]*unstructured.Unstructured, error) {
		found := map[xp.ID]*unstructured.Unstructured{}
		for _, r := range refs {
			found[r.ID()] = objects.Get(r)
		}

		return found, nil
	}
	if s.Saved, err = exchange.Walk(saved, inBackup); err != nil {
		return exchange.Plan{}, err
	}
	if s.Others, err = e.cluster.OfKinds(ctx, exchange.ManagedOf(s.Live)); err != nil {
		return exchange.Plan{}, err
	}
	for _, i := range e.archive.Items {
		if exchange.IsOfKinds(s.Live, i.Ref()) {
			s.SavedOthers = append(s.SavedOthers, i.Object())
		}
	}
	refs := make([]xp.Ref, 0, len(s.Saved.Below))
	for _, u := range s.Saved.Below {
		refs = append(refs, xp.RefTo(u))
	}
	found, err := e.cluster.FindAll(ctx, refs)
	if err != nil {
		return exchange.Plan{}, err
	}
	for _, r := range refs {
		if there := found[r.ID()]; there != nil {
			s.SameNames = append(s.SameNames, there)
		}
	}

	return s.Plan(), nil
}

// underWay returns the Restores that Velero still works on.
func (o *options) underWay(ctx context.Context, cluster *live.Cluster) ([]report.Restore, error) {
	restores, err := cluster.Restores(ctx, o.velero)

	return slices.DeleteFunc(restores, func(r report.Restore) bool { return !diagnosis.IsUnderWay(r.Phase) }), err
}
