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

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Rehearse says what a restore of a backup would do with each of its items, in the order in which it would come to them. It runs the actions as Velero
// would (velero pkg/restore/restore.go, restoreItem) on a cluster to which nothing is written; one that is nil is empty and serves what the
// backup has. It fails if the cluster can't be read.
func Rehearse(ctx context.Context, b *archive.Backup, cluster Scenery, restore *velerov1.Restore) ([]report.Fate, error) {
	r := &rehearsal{backup: b, restore: restore, stage: newStage(b, cluster), said: &record{}, done: map[xp.Item]bool{}}
	if err := r.prepare(r.said.log()); err != nil { //nolint:contextcheck // Velero gives actions none.
		return nil, err
	}
	items := slices.Clone(b.Items)
	slices.SortStableFunc(items, func(a, b archive.Item) int { return cmp.Compare(turn(a.Item), turn(b.Item)) })
	for _, i := range items {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.restoreItem(ctx, i.Item, i.Object, nil); err != nil {
			return nil, err
		}
	}

	return r.fates, nil
}

// rehearsal is one run over a backup.
type rehearsal struct {
	backup  *archive.Backup
	restore *velerov1.Restore
	stage   *stage
	actions []casting
	said    *record
	done    map[xp.Item]bool
	fates   []report.Fate
}

// A casting is an action with what it is for.
type casting struct {
	action    riav2.RestoreItemAction
	resources *collections.IncludesExcludes
	labels    labels.Selector
}

func (c casting) applies(i xp.Item, u *unstructured.Unstructured) bool {
	return c.resources.ShouldInclude(i.GroupResource.String()) && c.labels.Matches(labels.Set(u.GetLabels()))
}

func (r *rehearsal) prepare(log logrus.FieldLogger) error {
	asks, doom := &Asks{}, NewDoom(r.stage)
	var actions []riav2.RestoreItemAction
	for _, o := range Orders() {
		actions = append(actions, NewOrder(o.Selector, r.stage, asks, log).Minding(doom))
	}
	for _, a := range Adopts() {
		actions = append(actions, NewAdopt(a.Selector, r.stage, nil, log).Minding(doom).Knowing(asks))
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
		r.actions = append(r.actions, casting{action: a, resources: resources, labels: selector})
	}

	return nil
}

// restoreItem does what Velero's function of that name does. The Ref is of what has asked for the item, nil if it is its turn. It fails only if
// the cluster can't be read.
func (r *rehearsal) restoreItem(ctx context.Context, i xp.Item, original *unstructured.Unstructured, asker *xp.Ref) error {
	if r.done[i] {
		return nil
	}
	r.done[i] = true
	fate := report.Fate{Item: xp.RefTo(original), Resource: i.GroupResource.String(), For: asker}
	if to := targetNamespace(i.Namespace, r.restore); to != i.Namespace {
		fate.Namespace = to
	}
	outcome, err := r.outcome(ctx, i, original)
	if err != nil {
		return err
	}
	fate.Outcome = outcome
	r.fates = append(r.fates, fate)

	return nil
}

func (r *rehearsal) outcome(ctx context.Context, i xp.Item, original *unstructured.Unstructured) (report.Outcome, error) {
	if why := unrestorable(i, original); why != "" {
		return report.Outcome{Action: report.Skip, Reason: why}, nil
	}
	u := reset(original)
	var said []*logrus.Entry
	for _, c := range r.actions {
		if !c.applies(i, u) {
			continue
		}
		input := &velero.RestoreItemActionExecuteInput{Item: u.DeepCopy(), ItemFromBackup: original.DeepCopy(), Restore: r.restore}
		out, entries, err := r.execute(c, input)
		said = append(said, entries...)
		switch {
		case r.stage.failed != nil:
			return report.Outcome{}, r.stage.failed
		case err != nil:
			return report.Outcome{Action: report.Refuse, Reason: err.Error()}, nil //nolint:nilerr // It is what the restore would say.
		case out.SkipRestore:
			return left(said), nil
		case out.UpdatedItem != nil:
			u = &unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}
		}
		if err := r.additional(ctx, original, out.AdditionalItems); err != nil {
			return report.Outcome{}, err
		}
	}

	return r.create(ctx, i, u, said)
}

func (r *rehearsal) execute(c casting, input *velero.RestoreItemActionExecuteInput) (*velero.RestoreItemActionExecuteOutput, []*logrus.Entry, error) {
	r.said.entries = nil
	out, err := c.action.Execute(input)

	return out, r.said.entries, err //nolint:wrapcheck // It is what the restore would say.
}

// additional restores what an action has asked for with an item. Velero warns of what is not in the backup.
func (r *rehearsal) additional(ctx context.Context, of *unstructured.Unstructured, ids []velero.ResourceIdentifier) error {
	self := xp.RefTo(of)
	for _, id := range ids {
		i := xp.Item{GroupResource: id.GroupResource, Namespace: id.Namespace, Name: id.Name}
		u := r.backup.Get(i)
		if u == nil {
			continue
		}
		if err := r.restoreItem(ctx, i, u, &self); err != nil {
			return err
		}
	}

	return nil
}

// create says what becomes of an item that the actions have let through.
func (r *rehearsal) create(ctx context.Context, i xp.Item, u *unstructured.Unstructured, said []*logrus.Entry) (report.Outcome, error) {
	u.SetNamespace(targetNamespace(i.Namespace, r.restore))
	if to, mapped := r.restore.Spec.NamespaceMapping[i.Name]; mapped && i.GroupResource == resourceNamespaces {
		u.SetName(to)
	}
	self := xp.RefTo(u)
	_, _, err := r.stage.Resource(u.GroupVersionKind())
	switch {
	case meta.IsNoMatchError(err):
		return report.Outcome{Action: report.Refuse, Reason: "the cluster does not serve " + u.GroupVersionKind().String() + ", and its CRD is not in the backup; " +
			"install its XRD or its provider, then restore again"}, nil
	case err != nil:
		return report.Outcome{}, err
	}
	exists, err := r.stage.exists(ctx, self)
	switch {
	case apierrors.IsForbidden(err):
		// A backup has more kinds than Crossplane's, and whoever plans a restore need not be allowed to read all of them.
		o := r.created(u, said)
		o.Reason = strings.TrimSuffix("whether it is there already may not be read; "+o.Reason, "; ")

		return o, nil
	case err != nil:
		return report.Outcome{}, err
	case exists:
		return r.existing(ctx, self, said)
	default:
		return r.created(u, said), nil
	}
}

// created says how an item comes back that is not live, and has it be there from now on.
func (r *rehearsal) created(u *unstructured.Unstructured, said []*logrus.Entry) report.Outcome {
	r.stage.add(u)
	if isCopy(said) {
		return report.Outcome{Action: report.Clone, Reason: warnings(said)}
	}
	if h, err := adoption.HoldOf(u); err == nil && h != nil && h.Restore == r.restore.Namespace+"/"+r.restore.Name {
		return report.Outcome{Action: report.Keep, Reason: whyHeld(u, h)}
	}

	return report.Outcome{Action: report.Create, Reason: warnings(said)}
}

// existing says what becomes of an item that is live: Velero leaves it, also if it goes a moment later.
func (r *rehearsal) existing(ctx context.Context, self xp.Ref, said []*logrus.Entry) (report.Outcome, error) {
	deleting, err := r.stage.Deleting(ctx, self)
	switch {
	case err != nil:
		return report.Outcome{}, err
	case deleting:
		return report.Outcome{Action: report.Refuse, Reason: "it exists and is being deleted, and Velero leaves it to that; restore when it is gone"}, nil
	default:
		return report.Outcome{Action: report.Exists, Reason: warnings(said)}, nil
	}
}
