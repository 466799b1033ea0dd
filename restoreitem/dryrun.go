package restoreitem

import (
	"cmp"
	"context"
	"fmt"
	"io"
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

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// DryRun reports what a restore of a backup would do with each item, in Velero's order. It runs the
// actions as Velero does (velero pkg/restore/restore.go, restoreItem) and writes nothing to the
// cluster. A nil cluster is an empty one that serves the kinds of the backup. DryRun fails if the
// cluster can't be read, and if Velero would refuse the Restore's filters.
func DryRun(ctx context.Context, b *archive.Backup, cluster DryRunCluster, restore *velerov1.Restore, tell func(report.ItemResult)) error {
	selected, err := newSelection(ctx, cluster, restore)
	if err != nil {
		return err
	}
	r := &dryRun{
		backup: b, restore: restore, selection: selected, cluster: newSimulatedCluster(b, cluster), done: make([]bool, len(b.Items)),
		actions: map[schema.GroupResource][]registeredAction{}, report: tell,
	}
	if err := r.prepare(); err != nil { //nolint:contextcheck // Velero gives actions no context.
		return err
	}
	var left []int
	for _, n := range restoreOrder(b.Items) {
		if why := r.selection.leavesOut(b.Items[n], false); !why.IsZero() {
			left = append(left, n) // Another item can request it, or need it as its Namespace.

			continue
		}
		if err := r.restoreItem(ctx, n); err != nil {
			return err
		}
	}
	r.leaveOut(left)

	return nil
}

// restoreOrder returns the indexes of the items in the order in which Velero restores them.
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

type dryRun struct {
	backup    *archive.Backup
	restore   *velerov1.Restore
	selection selection
	cluster   *simulatedCluster
	// registered are all actions; actions has those for each resource met so far.
	registered []registeredAction
	actions    map[schema.GroupResource][]registeredAction
	// remarked are the remarks of the action that runs.
	remarked []remark
	// done has, for each item of the backup, whether the dry run has reached it.
	done   []bool
	report func(report.ItemResult)
}

type registeredAction struct {
	action    riav2.RestoreItemAction
	resources *collections.IncludesExcludes
	labels    labels.Selector
}

// actionsFor returns the actions for a resource. Some may select by label, too.
func (d *dryRun) actionsFor(resource schema.GroupResource) []registeredAction {
	actions, ok := d.actions[resource]
	if !ok {
		actions = slices.DeleteFunc(slices.Clone(d.registered), func(c registeredAction) bool { return !c.resources.ShouldInclude(resource.String()) })
		d.actions[resource] = actions
	}

	return actions
}

func (d *dryRun) prepare() error {
	log := logrus.New()
	log.SetOutput(io.Discard)
	shared := Shared{Requested: &RequestedItems{}, XRDs: NewXRDCheck(d.cluster), remarks: func(r []remark) { d.remarked = r }}
	var actions []riav2.RestoreItemAction
	for _, o := range Orders() {
		actions = append(actions, NewOrder(o.Selector, d.cluster, log, shared))
	}
	for _, a := range Adopts() {
		actions = append(actions, NewAdopt(a.Selector, d.cluster, nil, log, shared))
	}
	for _, a := range actions {
		of, _ := a.AppliesTo() // This package's actions return no error.
		selector, err := labels.Parse(of.LabelSelector)
		if err != nil {
			return fmt.Errorf("cannot read the selector of %s: %w", a.Name(), err)
		}
		resources := collections.NewIncludesExcludes().Includes(of.IncludedResources...).Excludes(of.ExcludedResources...)
		d.registered = append(d.registered, registeredAction{action: a, resources: resources, labels: selector})
	}

	return nil
}

// An itemRun is the state of an item in the dry run.
type itemRun struct {
	item     xp.Item
	self     xp.Ref
	original *unstructured.Unstructured
	// requester is the item that requested it, nil if none did.
	requester *xp.Ref
	// updated is the item after the actions so far, remarked their remarks, and left the others.
	updated  *unstructured.Unstructured
	left     []registeredAction
	remarked []remark
	// first are the additional items that are still to come. waiting is the action that awaits them.
	first   []velero.ResourceIdentifier
	waiting riav2.RestoreItemAction
	// outcome is the result, nil until it is known.
	outcome *report.Outcome
}

// leaveOut reports the items that the Restore does not select, unless they came with others.
func (d *dryRun) leaveOut(left []int) {
	for _, n := range left {
		if i := d.backup.Items[n]; !d.done[n] {
			why := unrestorable(i)
			if why.IsZero() {
				why = d.selection.leavesOut(i, false)
			}
			d.conclude(&itemRun{item: i.Item, self: i.Ref(), outcome: new(report.OutcomeOf(report.Skip, why))})
		}
	}
}

// restoreItem does what Velero's restoreItem does with an item and its additional items. It does
// not recurse, since an untrusted backup decides how deep that goes.
func (d *dryRun) restoreItem(ctx context.Context, n int) error {
	path := d.push(nil, n, nil)
	for len(path) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		v := path[len(path)-1]
		switch {
		case len(v.first) > 0:
			next := xp.Item(v.first[0])
			v.first = v.first[1:]
			// Velero warns of an item that is not in the backup.
			if n := d.backup.Index(next); n >= 0 && d.selection.leavesOut(d.backup.Items[n], true).IsZero() {
				path = d.push(path, n, new(v.self))
			}
		case v.waiting != nil:
			_, _ = v.waiting.AreAdditionalItemsReady(nil, d.restore) // Nothing is created that could become ready.
			v.waiting = nil
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

// push puts an item on the path, unless it was on it before.
func (d *dryRun) push(path []*itemRun, n int, requester *xp.Ref) []*itemRun {
	if d.done[n] {
		return path
	}
	d.done[n] = true
	i := d.backup.Items[n]
	v := &itemRun{item: i.Item, self: i.Ref(), requester: requester}
	if why := unrestorable(i); !why.IsZero() {
		v.outcome = new(report.OutcomeOf(report.Skip, why))
	} else {
		v.original, v.updated, v.left = i.Object(), i.Part(newItemShape), d.actionsFor(i.GroupResource)
	}
	path = append(path, v)
	if namespace := namespaceOf(d.backup, i.Item); namespace >= 0 && v.outcome == nil {
		return d.push(path, namespace, nil)
	}

	return path
}

func (d *dryRun) conclude(v *itemRun) {
	result := report.ItemResult{Item: v.self, Resource: v.item.GroupResource.String(), For: v.requester, Outcome: *v.outcome}
	if to := targetNamespace(v.item.Namespace, d.restore); to != v.item.Namespace {
		result.Namespace = to
	}
	d.report(result)
}

// step runs the next action on an item, or creates the item if no action is left.
func (d *dryRun) step(ctx context.Context, v *itemRun) error {
	if len(v.left) == 0 {
		outcome, err := d.create(ctx, v)
		v.outcome = &outcome

		return err
	}
	c := v.left[0]
	v.left = v.left[1:]
	if !c.labels.Empty() && !c.labels.Matches(labels.Set(v.updated.GetLabels())) {
		return nil
	}
	// Velero gives each action copies. These actions change nothing that they don't return.
	out, err := c.action.Execute(&velero.RestoreItemActionExecuteInput{Item: v.updated, ItemFromBackup: v.original, Restore: d.restore})
	v.remarked = append(v.remarked, d.remarked...)
	switch {
	case d.cluster.failed != nil:
		return d.cluster.failed
	case err != nil:
		v.outcome = &report.Outcome{Action: report.Refuse, Reason: err.Error(), Code: reason.CodeOf(err)}

		return nil
	case out.SkipRestore:
		v.outcome = new(leftOutOutcome(v.remarked))

		return nil
	case out.UpdatedItem != nil:
		v.updated = &unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}
	}
	if v.first = out.AdditionalItems; out.WaitForAdditionalItems {
		v.waiting = c.action
	}

	return nil
}

// create returns the outcome of an item that no action has left out or refused.
func (d *dryRun) create(ctx context.Context, v *itemRun) (report.Outcome, error) {
	u := v.updated
	u.SetNamespace(targetNamespace(v.item.Namespace, d.restore))
	if to, mapped := d.restore.Spec.NamespaceMapping[v.item.Name]; mapped && v.item.GroupResource == resourceNamespaces {
		u.SetName(to)
	}
	_, _, err := d.cluster.Resource(u.GroupVersionKind())
	switch {
	case meta.IsNoMatchError(err):
		return report.OutcomeOf(report.Refuse, d.unserved(ctx, u.GroupVersionKind())), nil
	case err != nil:
		return report.Outcome{}, err
	}
	var unread []reason.Message
	exists, err := d.cluster.exists(ctx, xp.RefTo(u))
	switch {
	case apierrors.IsForbidden(err):
		// A user who plans a restore may lack the right to read some kinds.
		unread = append(unread, reason.NotRead.Messagef("you may not read whether it exists"))
	case xp.IsConversion(err):
		unread = append(unread, reason.NotRead.Messagef("the API server can't read whether it exists: %v", err))
	case err != nil:
		return report.Outcome{}, err
	case exists:
		return d.existing(ctx, xp.RefTo(u), v.remarked)
	}
	d.cluster.add(u)
	if h, err := hold.Of(u); err == nil && h != nil && h.Restore == d.restore.Namespace+"/"+d.restore.Name && !isCopy(v.remarked) {
		why := strings.TrimSuffix(reason.Join(unread)+"; "+whyHeld(u, h), "; ")

		return report.Outcome{Action: report.Keep, Reason: strings.TrimPrefix(why, "; ")}, nil
	}
	o := report.Outcome{Action: report.Create, Reason: reason.Join(append(unread, warnings(v.remarked)...))}
	if isCopy(v.remarked) {
		o.Action = report.Clone
	}

	return o, nil
}

// unserved returns why an item of an unserved kind can't be restored, and the next step.
func (d *dryRun) unserved(ctx context.Context, gvk schema.GroupVersionKind) reason.Message {
	if name := d.cluster.inactive(ctx, gvk.GroupKind()); name != "" {
		return reason.KindNotActive.Messagef("the cluster does not serve %s, because its ManagedResourceDefinition %s is not active; %s. Then restore again", gvk,
			name, xp.HowToActivate(name))
	}

	return reason.KindNotServed.Messagef("the cluster does not serve %s, and its CRD is not in the backup. Install its XRD or provider, then restore again", gvk)
}

// existing returns the outcome of a live item. Velero leaves it as it is, unless the Restore has it
// update what exists, and in any case if it is being deleted.
func (d *dryRun) existing(ctx context.Context, self xp.Ref, remarked []remark) (report.Outcome, error) {
	deleting, err := d.cluster.Deleting(ctx, self)
	switch {
	case err != nil:
		return report.Outcome{}, err
	case deleting:
		why := reason.BeingDeleted.Messagef("it exists and is being deleted, so Velero does not restore it. Restore when it is gone")

		return report.OutcomeOf(report.Refuse, why), nil
	case d.restore.Spec.ExistingResourcePolicy == velerov1.PolicyTypeUpdate:
		return report.Outcome{Action: report.Update, Reason: reason.Join(warnings(remarked))}, nil
	default:
		return report.Outcome{Action: report.Exists, Reason: reason.Join(warnings(remarked))}, nil
	}
}
