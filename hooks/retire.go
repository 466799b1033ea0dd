package hooks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/objectstore"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	retireTimeout  = 2 * time.Minute
	retireInterval = time.Second
)

const retireLong = `Retire ends a handover in the cluster that gave its objects away: it deletes the claims, XRs and managed resources that the command hold
holds, without their external resources. It takes the finalizers off first, so no controller acts.

--report is the report of the other cluster: the output of "validate -o json" there, with a namespace or not. With --report-location retire reads it from
the bucket, where validate with the same flag has stored it. Retire deletes an object only if the report says
that it is adopted there: it exists, is not held, and a managed resource has the same external-name. An object that is not adopted there stays, and so do the
XR and the claim above it.

It deletes nothing else. Objects that an XR composes and that are no managed resources stay, without an owner: their deletion could delete something in the
cloud. Remove the objects from Git before: what applies them would create them again.

It waits until what it deletes is gone, and names what another writer creates again. It is safe to run again. It exits with 0 if everything is retired, and 3
if an object stays. See docs/handover.md.`

const retireExample = `  # In the other cluster
  ` + Name + ` validate -n team-a -o json > adopted.json

  # In this cluster
  ` + Name + ` retire -n team-a --report adopted.json --dry-run
  ` + Name + ` retire -n team-a --report adopted.json

  # The same without a file, where both have Velero's plugin for the object store
  ` + Name + ` validate -n team-a --report-location default
  ` + Name + ` retire -n team-a --report-location default`

// A retire holds the flags of retire and its results.
type retire struct {
	*options

	out         output
	file        string
	bucket      storeFlags
	namespaces  map[string]string
	dryRun, yes bool
	// timeout and pause are how long and how often it waits until what it deletes is gone.
	timeout, pause time.Duration

	cluster *live.Cluster
	key     adoption.Key
	// adopted are the nodes of the other cluster's report.
	adopted map[xp.ID]*report.Node
	// below is what each object composes or binds, and stays are the objects that stay.
	below   map[xp.ID][]xp.Ref
	stays   map[xp.ID]bool
	results []report.Release
	// deleted are the UIDs of the objects that it has deleted.
	deleted map[xp.ID]types.UID
}

func newRetire(o *options) *cobra.Command {
	r := &retire{options: o, pause: retireInterval, deleted: map[xp.ID]types.UID{}}
	c := &cobra.Command{
		Use:     "retire --report FILE | --report-location NAME",
		Short:   "Delete what another cluster has adopted, without the external resources",
		Long:    retireLong,
		Example: retireExample,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (r.file == "") == (r.bucket.location == "") {
				return errors.New("cannot tell what the other cluster has adopted: give its report, as a file with --report, or from the bucket with --report-location")
			}
			if !r.yes && !r.dryRun && !isTerminal(r.In) {
				return errors.New("cannot ask: stdin is no terminal; check the list with --dry-run, then give --yes")
			}
			var other *report.Report
			if r.file != "" {
				var err error
				if other, err = r.read(); err != nil {
					return failed(err)
				}
			}

			return o.inCluster(c, func(ctx context.Context, cluster *live.Cluster) error {
				r.cluster = cluster
				if other == nil {
					var err error
					if other, err = r.readStored(ctx); err != nil {
						return err
					}
				}

				return r.run(ctx, other)
			})
		},
	}
	c.Flags().StringVar(&r.file, "report", "", `the report of the other cluster: the output of "validate -o json" there, or - for stdin`)
	r.bucket.addTo(c)
	c.Flags().StringToStringVar(&r.namespaces, "namespace-mappings", nil, "namespaces that the restore there has mapped, as HERE=THERE")
	c.Flags().BoolVar(&r.dryRun, "dry-run", false, "print what it would do, and change nothing")
	c.Flags().DurationVar(&r.timeout, "timeout", retireTimeout, "how long to wait until what it deletes is gone")
	c.Flags().BoolVarP(&r.yes, "yes", "y", false, "don't ask")
	_ = c.MarkFlagFilename("report", "json")
	_ = r.out.addTo(c, resultFormats()...) // It fails only if the flag is there already.

	return c
}

// maxReport limits the size of a report in bytes.
const maxReport = 512 << 20

// read reads the report of the other cluster from the file.
func (r *retire) read() (*report.Report, error) {
	in := r.In
	if r.file != "-" {
		f, err := os.Open(r.file)
		if err != nil {
			return nil, fmt.Errorf("cannot read the report: %w", err)
		}
		defer func() { _ = f.Close() }() // It was only read.
		in = f
	}

	return r.decode(in)
}

// readStored reads the report that validate has stored, for the namespace as the other cluster has
// it.
func (r *retire) readStored(ctx context.Context) (*report.Report, error) {
	store, err := r.bucket.store(ctx, r.cluster, r.velero, false)
	if err != nil {
		return nil, rightError(err)
	}
	defer store.Close()
	r.file = handoverFile(cmp.Or(r.namespaces[r.namespace], r.namespace))
	b, err := store.Get(r.file)
	if errors.Is(err, objectstore.ErrNotFound) {
		return nil, reason.ReportNotStored.Errorf("%w; in the other cluster run validate with --report-location", err)
	}
	if err != nil {
		return nil, reason.ReportNotStored.Errorf("%w", err)
	}

	return r.decode(bytes.NewReader(b))
}

// decode reads a report, which is that of r.file.
func (r *retire) decode(in io.Reader) (*report.Report, error) {
	other := &report.Report{}
	if err := json.NewDecoder(io.LimitReader(in, maxReport)).Decode(other); err != nil {
		return nil, reason.ReportUnusable.Errorf("cannot read the report %s: %w", r.file, err)
	}
	if other.APIVersion != report.APIVersion || other.Kind != report.KindValidation {
		return nil, reason.ReportUnusable.Errorf("cannot use %s: it is no output of \"validate -o json\" (apiVersion %q, kind %q)",
			r.file, other.APIVersion, other.Kind)
	}

	return other, nil
}

func (r *retire) run(ctx context.Context, other *report.Report) error {
	if err := r.checkOther(ctx, other); err != nil {
		return err
	}
	var err error
	if r.key, err = r.cluster.ReadMarkKey(ctx, r.velero); err != nil {
		return rightError(err)
	}
	sc, err := r.readScope(ctx, r.cluster)
	if err != nil {
		return err
	}
	if sc.isEmpty() && !r.isBegun(ctx) {
		return r.noScope()
	}
	r.index(other.Trees)
	r.below, r.stays = childrenOf(sc.survey.Trees()), map[xp.ID]bool{}
	plan := r.plan(sc, other)
	if !r.dryRun && len(plan) > 0 {
		question := fmt.Sprintf("Delete %s in %s, and keep the external resources?", printer.Counted(len(plan), "object"), r.cluster.Name())
		if ok, err := ask(ctx, r.options, r.yes, question); err != nil || !ok {
			return errors.Join(err, reason.NotConfirmed.Errorf("cannot go on without a yes; nothing was changed"))
		}
	}

	return r.finish(ctx, sc, r.retireAll(ctx, plan))
}

// retireAll deletes objects and waits until they are gone. If it is interrupted or lacks a right, it
// records the rest as held.
func (r *retire) retireAll(ctx context.Context, plan []*unstructured.Unstructured) error {
	for n, u := range plan {
		err := ctx.Err()
		if err == nil {
			err = r.retire(ctx, u)
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			err = reason.Interrupted.Errorf("cannot continue: %w; run retire again", ctx.Err())
		}
		for _, rest := range plan[n:] {
			r.keep(rest, reason.Message{Code: reason.CodeOf(err), Text: "retire stopped before it deleted this object"}, "run retire again")
		}

		return err
	}
	if len(r.deleted) == 0 {
		return nil
	}

	return r.awaitGone(ctx)
}

// isBegun returns true if a handover is recorded here, so that an earlier run can have deleted all.
func (r *retire) isBegun(ctx context.Context) bool {
	records, err := r.cluster.Handovers(ctx, r.velero)
	_, ok := records[r.namespace]

	return err == nil && ok
}

// checkOther returns an error if a report can't prove that another cluster has adopted anything.
func (r *retire) checkOther(ctx context.Context, other *report.Report) error {
	uid, err := r.cluster.UID(ctx)
	if err != nil {
		return rightError(err)
	}
	switch other.Cluster {
	case "":
		return reason.ReportUnusable.Errorf("cannot use %s: it does not name its cluster; make it with the right to get the namespace kube-system", r.file)
	case uid:
		return reason.ReportUnusable.Errorf("cannot use %s: it is a report of this cluster", r.file)
	default:
		return nil
	}
}

func (r *retire) index(trees []*report.Node) {
	r.adopted = map[xp.ID]*report.Node{}
	var visit func(nodes []*report.Node)
	visit = func(nodes []*report.Node) {
		for _, n := range nodes {
			if n.State != report.Foreign {
				r.adopted[n.ID()] = n
			}
			visit(n.Children)
		}
	}
	visit(trees)
}

// retire deletes an object, unless something below it stays, and records the result.
func (r *retire) retire(ctx context.Context, u *unstructured.Unstructured) error {
	one := report.Release{Object: xp.RefTo(u), Result: report.WouldRetire, Steps: []string{"take its finalizers off", "delete it"}}
	if r.dryRun {
		r.results = append(r.results, one)

		return nil
	}
	if why := r.stayingBelow(one.Object.ID()); !why.IsZero() {
		r.keep(u, why, "run retire again when that is gone")

		return nil
	}
	switch err := r.cluster.Retire(ctx, u); {
	case apierrors.IsConflict(err):
		r.keep(u, reason.ChangedSinceConfirmed.Messagef("another writer has changed it meanwhile: %v", err), "run retire again")
	case apierrors.IsForbidden(err) && !isDenied(err):
		return rightError(err)
	case err != nil:
		r.keep(u, reason.NotDeleted.Messagef("%v", err), "repair that, and run retire again")
	default:
		fmt.Fprintf(r.Err, "%s: deleted here, and its external resource is as it was\n", one.Object)
		one.Result, r.deleted[one.Object.ID()] = report.Retired, u.GetUID()
		r.results = append(r.results, one)
	}

	return nil
}

// finish ends the record of the handover if nothing stays, and prints the results. stopped is why
// retire has stopped early, or nil.
func (r *retire) finish(ctx context.Context, sc *scope, stopped error) error {
	rep := &report.Report{Kind: report.KindRetirement, Source: r.cluster.Name(), Time: time.Now().UTC().Truncate(time.Second), Releases: r.results}
	problems := sc.problems()
	for _, one := range r.results {
		if one.Result == report.StillHeld {
			problems = append(problems, report.Problem{Code: one.Code, Severity: report.Error, Object: one.Object, Reason: one.Reason, Next: one.Next})
		}
	}
	rep.Assemble(nil, problems)
	if rep.Summary.Problems == 0 && !r.dryRun && stopped == nil {
		if err := r.cluster.RecordHandover(ctx, r.velero, r.namespace, nil); err != nil {
			return rightError(err)
		}
	}
	if err := errors.Join(stopped, r.print(rep, r.out)); err != nil {
		return err
	}

	return exitFor(rep.Summary.Problems)
}

// isDenied reports whether an admission webhook denied a request; RBAC gives the same status code.
func isDenied(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "denied the request")
}
