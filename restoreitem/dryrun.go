package restoreitem

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	riav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/restoreitemaction/v2"
	"github.com/vmware-tanzu/velero/pkg/util/collections"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// DryRun tells what a restore of a backup would do with each of its items, in the order in which it
// would come to them. It runs the actions as Velero would (velero pkg/restore/restore.go,
// restoreItem) on a cluster to which nothing is written; one that is nil is empty and serves what
// the backup has. It fails if the cluster can't be read.
func DryRun(ctx context.Context, b *archive.Backup, cluster DryRunCluster, restore *velerov1.Restore, tell func(report.ItemResult)) error {
	r := &dryRun{
		backup: b, restore: restore, cluster: newSimulatedCluster(b, cluster), logged: &record{}, done: make([]bool, len(b.Items)),
		actions: map[schema.GroupResource][]registeredAction{}, report: tell,
	}
	if err := r.prepare(r.logged.log()); err != nil { //nolint:contextcheck // Velero gives actions none.
		return err
	}
	for _, n := range restoreOrder(b.Items) {
		if err := r.restoreItem(ctx, n); err != nil {
			return err
		}
	}

	return nil
}

// restoreOrder returns where the items are, in the order in which Velero comes to them.
func restoreOrder(items []archive.Item) []int {
	turns := map[schema.GroupResource]int{}
	order := make([]int, len(items))
	for n, i := range items {
		if order[n] = n; turns[i.GroupResource] == 0 {
			turns[i.GroupResource] = turn(i.Item) + 1
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(turns[items[a].GroupResource], turns[items[b].GroupResource]) })

	return order
}

// dryRun is one run over a backup.
type dryRun struct {
	backup  *archive.Backup
	restore *velerov1.Restore
	cluster *simulatedCluster
	// registered are all actions, and actions those for a resource, of those that came up.
	registered []registeredAction
	actions    map[schema.GroupResource][]registeredAction
	logged     *record
	// done are the items of the backup that the rehearsal came to.
	done   []bool
	report func(report.ItemResult)
}

// A registeredAction is an action with what it is for.
type registeredAction struct {
	action    riav2.RestoreItemAction
	resources *collections.IncludesExcludes
	labels    labels.Selector
}

// actionsFor returns the actions for a resource, some of which may be for what has some labels
// only.
func (d *dryRun) actionsFor(resource schema.GroupResource) []registeredAction {
	actions, ok := d.actions[resource]
	if !ok {
		actions = slices.DeleteFunc(slices.Clone(d.registered), func(c registeredAction) bool { return !c.resources.ShouldInclude(resource.String()) })
		d.actions[resource] = actions
	}

	return actions
}

func (d *dryRun) prepare(log logrus.FieldLogger) error {
	requested, xrds := &RequestedItems{}, NewXRDCheck(d.cluster)
	var actions []riav2.RestoreItemAction
	for _, o := range Orders() {
		actions = append(actions, NewOrder(o.Selector, d.cluster, requested, log, WithClaimKinds(d.cluster), WithXRDCheck(xrds)))
	}
	for _, a := range Adopts() {
		actions = append(actions, NewAdopt(a.Selector, d.cluster, nil, log, WithXRDCheck(xrds), WithRequestedItems(requested)))
	}
	for _, a := range actions {
		of, err := a.AppliesTo()
		if err != nil {
			return err //nolint:wrapcheck // They are ours, and have none.
		}
		selector, err := labels.Parse(of.LabelSelector)
		if err != nil {
			return fmt.Errorf("cannot read the selector of %s: %w", a.Name(), err)
		}
		resources := collections.NewIncludesExcludes().Includes(of.IncludedResources...).Excludes(of.ExcludedResources...)
		d.registered = append(d.registered, registeredAction{action: a, resources: resources, labels: selector})
	}

	return nil
}

// An itemRun is an item while the rehearsal is at it.
type itemRun struct {
	item     xp.Item
	self     xp.Ref
	original *unstructured.Unstructured
	// requester is what has asked for the item, nil if it is its turn.
	requester *xp.Ref
	// updated is what the actions have made of it so far, left those that are still to come, and
	// said what those before have said.
	updated *unstructured.Unstructured
	left    []registeredAction
	logged  []*logrus.Entry
	// first are what the last action has asked for.
	first []velero.ResourceIdentifier
	// outcome is what becomes of it; nil until that is known.
	outcome *report.Outcome
}

// restoreItem does what Velero's function of that name does, with an item and all that it asks for:
// whoever has made the backup decides how deep that goes, so it does not call itself. It fails only
// if the cluster can't be read.
func (d *dryRun) restoreItem(ctx context.Context, n int) error {
	path := d.push(nil, n, nil)
	for len(path) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		v := path[len(path)-1]
		switch {
		case len(v.first) > 0:
			id := v.first[0]
			v.first = v.first[1:]
			next := xp.Item{GroupResource: id.GroupResource, Namespace: id.Namespace, Name: id.Name}
			// Velero warns of what is not in the backup.
			if n := d.backup.Index(next); n >= 0 {
				path = d.push(path, n, &v.self)
			}
		case v.outcome != nil:
			d.conclude(v)
			path = path[:len(path)-1]
		default:
			if err := d.step(ctx, v); err != nil {
				return err
			}
		}
	}

	return nil
}

// push puts an item on the path, unless it was there before.
func (d *dryRun) push(path []*itemRun, n int, asker *xp.Ref) []*itemRun {
	if d.done[n] {
		return path
	}
	d.done[n] = true
	i := d.backup.Items[n]
	v := &itemRun{item: i.Item, self: i.Ref()}
	if asker != nil {
		v.requester = new(*asker)
	}
	if why := unrestorable(i); why != "" {
		v.outcome = &report.Outcome{Action: report.Skip, Reason: why}
	} else {
		v.original, v.updated, v.left = i.Object(), i.Part(newItemShape), d.actionsFor(i.GroupResource)
	}

	return append(path, v)
}

// conclude says what becomes of an item.
func (d *dryRun) conclude(v *itemRun) {
	fate := report.ItemResult{Item: v.self, Resource: v.item.GroupResource.String(), For: v.requester, Outcome: *v.outcome}
	if to := targetNamespace(v.item.Namespace, d.restore); to != v.item.Namespace {
		fate.Namespace = to
	}
	d.report(fate)
}

// step runs the next action on an item, or creates it if there is none.
func (d *dryRun) step(ctx context.Context, v *itemRun) error {
	if len(v.left) == 0 {
		outcome, err := d.create(ctx, v.item, v.updated, v.logged)
		v.outcome = &outcome

		return err
	}
	c := v.left[0]
	v.left = v.left[1:]
	if !c.labels.Empty() && !c.labels.Matches(labels.Set(v.updated.GetLabels())) {
		return nil
	}
	// Velero gives each action copies. These actions change nothing that they don't return.
	input := &velero.RestoreItemActionExecuteInput{Item: v.updated, ItemFromBackup: v.original, Restore: d.restore}
	out, entries, err := d.execute(c, input)
	v.logged = append(v.logged, entries...)
	switch {
	case d.cluster.failed != nil:
		return d.cluster.failed
	case err != nil:
		v.outcome = &report.Outcome{Action: report.Refuse, Reason: err.Error()}

		return nil //nolint:nilerr // It is what the restore would say.
	case out.SkipRestore:
		outcome := leftOutOutcome(v.logged)
		v.outcome = &outcome

		return nil
	case out.UpdatedItem != nil:
		v.updated = &unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}
	}
	v.first = out.AdditionalItems

	return nil
}

func (d *dryRun) execute(c registeredAction, input *velero.RestoreItemActionExecuteInput) (*velero.RestoreItemActionExecuteOutput, []*logrus.Entry, error) {
	d.logged.entries = nil
	out, err := c.action.Execute(input)

	return out, d.logged.entries, err //nolint:wrapcheck // It is what the restore would say.
}

// create says what becomes of an item that the actions have let through.
func (d *dryRun) create(ctx context.Context, i xp.Item, u *unstructured.Unstructured, said []*logrus.Entry) (report.Outcome, error) {
	u.SetNamespace(targetNamespace(i.Namespace, d.restore))
	if to, mapped := d.restore.Spec.NamespaceMapping[i.Name]; mapped && i.GroupResource == resourceNamespaces {
		u.SetName(to)
	}
	self := xp.RefTo(u)
	_, _, err := d.cluster.Resource(u.GroupVersionKind())
	switch {
	case meta.IsNoMatchError(err):
		return report.Outcome{Action: report.Refuse, Reason: d.unserved(ctx, u.GroupVersionKind())}, nil
	case err != nil:
		return report.Outcome{}, err
	}
	exists, err := d.cluster.exists(ctx, self)
	switch {
	case apierrors.IsForbidden(err):
		// A backup has more kinds than Crossplane's, and whoever plans a restore need not be
		// allowed to read all of them.
		o := d.created(u, said)
		o.Reason = strings.TrimSuffix("whether it is there already may not be read; "+o.Reason, "; ")

		return o, nil
	case xp.IsConversion(err):
		o := d.created(u, said)
		o.Reason = strings.TrimSuffix("whether it is there already can't be read: "+err.Error()+"; "+o.Reason, "; ")

		return o, nil
	case err != nil:
		return report.Outcome{}, err
	case exists:
		return d.existing(ctx, self, said)
	default:
		return d.created(u, said), nil
	}
}

// unserved says why what is of a kind that is not served does not come back.
func (d *dryRun) unserved(ctx context.Context, gvk schema.GroupVersionKind) string {
	if name := d.cluster.inactive(ctx, gvk.GroupKind()); name != "" {
		return "the cluster does not serve " + gvk.String() + ", since its ManagedResourceDefinition " + name + " is not active; " + xp.HowToActivate(name) +
			". Then restore again"
	}

	return "the cluster does not serve " + gvk.String() + ", and its CRD is not in the backup; install its XRD or its provider, then restore again"
}

// created says how an item comes back that is not live, and has it be there from now on.
func (d *dryRun) created(u *unstructured.Unstructured, said []*logrus.Entry) report.Outcome {
	d.cluster.add(u)
	if isCopy(said) {
		return report.Outcome{Action: report.Clone, Reason: warnings(said)}
	}
	if h, err := adoption.HoldOf(u); err == nil && h != nil && h.Restore == d.restore.Namespace+"/"+d.restore.Name {
		return report.Outcome{Action: report.Keep, Reason: whyHeld(u, h)}
	}

	return report.Outcome{Action: report.Create, Reason: warnings(said)}
}

// existing says what becomes of an item that is live: Velero leaves it, also if it goes a moment
// later.
func (d *dryRun) existing(ctx context.Context, self xp.Ref, said []*logrus.Entry) (report.Outcome, error) {
	deleting, err := d.cluster.Deleting(ctx, self)
	switch {
	case err != nil:
		return report.Outcome{}, err
	case deleting:
		return report.Outcome{Action: report.Refuse, Reason: "it exists and is being deleted, and Velero leaves it to that; restore when it is gone"}, nil
	default:
		return report.Outcome{Action: report.Exists, Reason: warnings(said)}, nil
	}
}
