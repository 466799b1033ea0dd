package hooks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// retireAttempts is how often it tries again if another writer changes an object meanwhile.
const retireAttempts = 5

// A drillCleaning removes what drills have left.
type drillCleaning struct {
	*drillRun

	scope *scope
	// isDrill reports whether a Restore, by namespace/name, is one of a drill of the schedule.
	isDrill func(restore string) bool
	below   map[xp.ID][]xp.Ref
	stays   map[xp.ID]bool
	removed sets.Set[types.UID]
}

// clean removes what drills of the schedule left in quarantine, and records what stays as warnings.
// What they compose is removed before the XRs, and Usages, which protect others, before all.
func (d *drillRun) clean(ctx context.Context) error {
	sc, err := d.readScope(ctx, d.cluster)
	if err != nil {
		return err
	}
	c := &drillCleaning{drillRun: d, scope: sc, below: childrenOf(sc.survey.Trees()), stays: map[xp.ID]bool{}, removed: sets.New[types.UID]()}
	if c.isDrill, err = d.drillNames(ctx); err != nil {
		return err
	}
	all := sc.all()
	slices.Reverse(all) // MRs, schedules, XRs from the deepest up, claims.
	var usages, plan []*unstructured.Unstructured
	for _, u := range all {
		if c.isLeft(u) && c.mayRemove(u) {
			usages, plan = append(usages, sc.usages[xp.RefTo(u).ID()]...), append(plan, u)
		}
	}
	usages = slices.DeleteFunc(usages, func(u *unstructured.Unstructured) bool { return !c.isDrill(c.restoreOf(u)) })
	for _, u := range append(usages, plan...) {
		if err := c.remove(ctx, u); err != nil {
			return err
		}
	}
	if len(c.removed) == 0 {
		return nil
	}
	fmt.Fprintf(d.Err, "removed %s of drills, without external resources\n", printer.Counted(len(c.removed), "object"))

	return c.awaitGone(ctx)
}

// drillNames returns a function that reports whether a Restore is one of a drill. A Restore that is
// gone counts by its name: Velero deletes it with its backup.
func (d *drillRun) drillNames(ctx context.Context) (func(restore string) bool, error) {
	restores, err := d.cluster.Restores(ctx, d.velero)
	if err != nil {
		return nil, err
	}
	drills, err := d.cluster.Drills(ctx, d.velero, d.schedule)
	if err != nil {
		return nil, err
	}
	others := sets.New[string]()
	for _, r := range restores {
		others.Insert(r.Name)
	}
	for _, u := range drills {
		others.Delete(u.GetNamespace() + "/" + u.GetName())
	}

	return func(restore string) bool {
		namespace, name, _ := strings.Cut(restore, "/")

		return namespace == d.velero && adoption.IsDrillName(name, d.schedule) && !others.Has(restore)
	}, nil
}

// isLeft reports whether a drill brought an object.
func (c *drillCleaning) isLeft(u *unstructured.Unstructured) bool {
	if restore, _, ok := c.key.DrillHeld(u); ok {
		return c.isDrill(restore)
	}

	return c.isDrill(c.restoreOf(u))
}

// restoreOf returns the Restore that a label names, as namespace/name. Any user can write a label.
func (c *drillCleaning) restoreOf(u *unstructured.Unstructured) string {
	return c.velero + "/" + xp.Label(u, xp.LabelRestore)
}

// mayRemove reports whether an object can be removed, and records why it stays.
func (c *drillCleaning) mayRemove(u *unstructured.Unstructured) bool {
	_, shared, ok := c.key.DrillHeld(u)
	switch {
	case u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0:
		return false
	case !ok:
		return c.keep(u, "it is not in quarantine any more, so it can be reconciled")
	case shared != "":
		return c.keep(u, shared)
	}
	for _, child := range c.below[xp.RefTo(u).ID()] {
		if c.stays[child.ID()] {
			return c.keep(u, child.String()+" stays, which it composes")
		}
	}

	return true
}

// keep records that an object stays. It returns false.
func (c *drillCleaning) keep(u *unstructured.Unstructured, why string) bool {
	r := xp.RefTo(u)
	c.stays[r.ID()] = true
	c.problemOf(r, report.Warning, reason.DrillNotRemoved.Messagef("a drill brought it, and it stays: %s", why), "delete it without its external resource")

	return false
}

func (c *drillCleaning) remove(ctx context.Context, u *unstructured.Unstructured) error {
	for _, child := range c.below[xp.RefTo(u).ID()] {
		if c.stays[child.ID()] {
			c.keep(u, child.String()+" stays, which it composes")

			return nil
		}
	}
	err := c.cluster.Retire(ctx, u)
	for range retireAttempts {
		if !apierrors.IsConflict(err) {
			break
		}
		// A controller has reported the pause meanwhile, or a user has changed the object.
		now, unread := c.cluster.Get(ctx, xp.RefTo(u))
		switch {
		case apierrors.IsNotFound(unread):
			return nil
		case unread != nil:
			return unread
		case !xp.IsUsage(u) && !c.mayRemove(now):
			return nil
		}
		u, err = now, c.cluster.Retire(ctx, now)
	}
	switch {
	case apierrors.IsConflict(err):
		c.keep(u, "other writers change it all the time")
	case apierrors.IsForbidden(err) && !isDenied(err):
		return err
	case err != nil:
		c.keep(u, err.Error())
	default:
		c.removed.Insert(u.GetUID())
	}

	return nil
}

// awaitGone waits until the removed objects are gone.
func (c *drillCleaning) awaitGone(ctx context.Context) error {
	for deadline := time.Now().Add(c.gone); ; {
		sc, err := c.readScope(ctx, c.cluster)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(sc.all(), func(u *unstructured.Unstructured) bool { return !c.removed.Has(u.GetUID()) })
		if len(left) == 0 {
			return nil
		}
		if !time.Now().Before(deadline) {
			for _, u := range left {
				c.keep(u, fmt.Sprintf("it is being deleted, and the finalizers %v are left", u.GetFinalizers()))
			}

			return nil
		}
		if err := sleep(ctx, c.pause); err != nil {
			return reason.Interrupted.Errorf("cannot continue: %w; run the drill again", err)
		}
	}
}
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
