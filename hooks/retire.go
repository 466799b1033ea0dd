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
	"slices"
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
	for _, u := range plan {
		if err := r.retire(ctx, u); err != nil {
			return err
		}
	}

	if len(r.deleted) > 0 {
		if err := r.awaitGone(ctx); err != nil {
			return err
		}
	}

	return r.finish(ctx, sc)
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

// plan returns the objects to delete: Usages, which protect others, then composed objects before
// their XRs. It records those that stay.
func (r *retire) plan(sc *scope, other *report.Report) []*unstructured.Unstructured {
	var usages, plan []*unstructured.Unstructured
	all := sc.all()
	busy := r.busyAbove(all)
	slices.Reverse(all) // MRs, schedules, XRs from the deepest up, claims.
	for _, u := range all {
		id := xp.RefTo(u).ID()
		why := cmp.Or(r.whyStays(u, other), busy[id], r.stayingBelow(id))
		if why.IsZero() {
			usages, plan = append(usages, sc.usages[id]...), append(plan, u)
		} else {
			r.keep(u, why, "see what the other cluster reports about it, make a new report there, and run retire again")
		}
	}

	return append(usages, plan...)
}

// busyAbove returns why objects stay because something above them is not quiet: it would compose
// them again, and their providers would create their external resources again. all has claims
// first, then XRs, then what these compose.
func (r *retire) busyAbove(all []*unstructured.Unstructured) map[xp.ID]reason.Message {
	busy := map[xp.ID]reason.Message{}
	var visit func(above xp.Ref, why reason.Message)
	visit = func(above xp.Ref, why reason.Message) {
		for _, child := range r.below[above.ID()] {
			if busy[child.ID()].IsZero() {
				busy[child.ID()] = reason.NotHandedOver.Messagef("%s would compose it again, and is not quiet: %s", above, why.Text)
				visit(child, why)
			}
		}
	}
	for _, u := range all {
		if why := r.key.WhyNotQuiet(u); !why.IsZero() {
			visit(xp.RefTo(u), why)
		}
	}

	return busy
}

// keep records that an object stays.
func (r *retire) keep(u *unstructured.Unstructured, why reason.Message, next string) {
	ref := xp.RefTo(u)
	r.stays[ref.ID()] = true
	r.results = append(r.results, report.Release{Object: ref, Result: report.StillHeld, Code: why.Code, Reason: why.String(), Next: next})
}

// stayingBelow returns why an object stays because something that it composes does.
func (r *retire) stayingBelow(id xp.ID) reason.Message {
	for _, child := range r.below[id] {
		if r.stays[child.ID()] {
			return reason.NotAdoptedThere.Messagef("%s stays", child)
		}
	}

	return reason.Message{}
}

// childrenOf returns what each object in the trees composes or binds.
func childrenOf(trees []*report.Node) map[xp.ID][]xp.Ref {
	below := map[xp.ID][]xp.Ref{}
	var visit func(n *report.Node)
	visit = func(n *report.Node) {
		for _, child := range n.Children {
			if child.State != report.Foreign {
				below[n.ID()] = append(below[n.ID()], child.Ref)
			}
			visit(child)
		}
	}
	for _, root := range trees {
		visit(root)
	}

	return below
}

// whyStays returns why an object must stay in this cluster; zero if it may be deleted.
func (r *retire) whyStays(u *unstructured.Unstructured, other *report.Report) reason.Message {
	if why := r.key.WhyNotQuiet(u); !why.IsZero() {
		return why
	}
	h, err := r.key.HoldOf(u)
	if err != nil || !h.IsHandover() {
		return reason.NotHandedOver.Messagef("a Restore holds it, and not the command hold")
	}
	if since, err := time.Parse(time.RFC3339, h.Since); err != nil || other.Time.Before(since) {
		return reason.ReportUnusable.Messagef("the report is older than the handover, which began at %s", h.Since)
	}
	if xp.IsSchedule(u) {
		return reason.Message{} // It has no external resource.
	}

	return r.whyNotAdopted(u)
}

// whyNotAdopted returns why the other cluster's report does not prove that it has adopted an object.
func (r *retire) whyNotAdopted(u *unstructured.Unstructured) reason.Message {
	ref := xp.RefTo(u)
	if there, ok := r.namespaces[ref.Namespace]; ok {
		ref.Namespace = there
	}
	n := r.adopted[ref.ID()]
	switch {
	case n == nil:
		return reason.NotAdoptedThere.Messagef("the report does not have it")
	case n.Hold != nil || n.State == report.Held:
		return reason.NotAdoptedThere.Messagef("it is still held there")
	case n.State != report.Adopted && n.State != report.Alone:
		return reason.NotAdoptedThere.Messagef("it is %s there", n.State)
	case xp.IsManaged(u) && n.ExternalName != xp.Annotation(u, xp.AnnotationExternalName):
		return reason.NotAdoptedThere.Messagef("its external-name is %q here and %q there", xp.Annotation(u, xp.AnnotationExternalName), n.ExternalName)
	default:
		return reason.Message{}
	}
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

// finish ends the record of the handover if nothing stays, and prints the results.
func (r *retire) finish(ctx context.Context, sc *scope) error {
	rep := &report.Report{Kind: report.KindRetirement, Source: r.cluster.Name(), Time: time.Now().UTC().Truncate(time.Second), Releases: r.results}
	problems := sc.problems()
	for _, one := range r.results {
		if one.Result == report.StillHeld {
			problems = append(problems, report.Problem{Code: one.Code, Severity: report.Error, Object: one.Object, Reason: one.Reason, Next: one.Next})
		}
	}
	rep.Assemble(nil, problems)
	if rep.Summary.Problems == 0 && !r.dryRun {
		if err := r.cluster.RecordHandover(ctx, r.velero, r.namespace, nil); err != nil {
			return rightError(err)
		}
	}
	if err := r.print(rep, r.out); err != nil {
		return err
	}

	return exitFor(rep.Summary.Problems)
}
