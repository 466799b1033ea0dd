package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Schedule returns the schedule of the backup that a Restore brings back; "" for none.
func (c *Cluster) Schedule(ctx context.Context, velero, restore string) (string, error) {
	_, backup, err := c.restoreAndBackup(ctx, velero, restore)
	if err != nil {
		return "", fmt.Errorf("cannot find out which schedule the Restore %s/%s is of: %w", velero, restore, err)
	}

	return adoption.ScheduleOf(backup), nil
}

func (c *Cluster) restoreAndBackup(ctx context.Context, velero, restore string) (r, backup *unstructured.Unstructured, err error) {
	if r, err = c.Restore(ctx, velero, restore); err != nil {
		return nil, nil, err
	}
	name, _, _ := unstructured.NestedString(r.Object, "spec", "backupName")
	backup, err = c.Get(ctx, xp.Ref{APIVersion: adoption.KindBackup.GroupVersion().String(), Kind: adoption.KindBackup.Kind, Namespace: velero, Name: name})

	return r, backup, err
}

// RemoveStandbys removes what earlier restores brought into quarantine from the schedule of a
// Restore, and its backup does not have: composed resources first, without finalizers, so their
// external resources stay. It leaves, with the reason, what another writer has changed, and
// everything while the standby is being promoted. Marks count if the key signed them.
func (c *Cluster) RemoveStandbys(ctx context.Context, key adoption.Key, velero, restore string) (removed []xp.Ref, left []reason.Message, err error) {
	r, backup, err := c.restoreAndBackup(ctx, velero, restore)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot find out what the backup does not have: %w", err)
	}
	old, promoted, unread, err := c.oldStandbys(ctx, key, adoption.ScheduleOf(backup), velero+"/"+restore)
	for _, gv := range slices.Sorted(maps.Keys(unread)) {
		left = append(left, reason.StandbyNotRemoved.Messagef("nothing of %s is removed, since it can't be read: %s", gv, unread[gv]))
	}
	if err != nil || len(old) == 0 {
		return nil, left, err
	}
	if len(promoted) > 0 {
		return nil, append(left, reason.StandbyNotRemoved.Messagef("nothing is removed: the standby is being promoted, and %s can need what an older backup brought",
			xp.String(promoted[0]))), nil
	}
	if phase, _, _ := unstructured.NestedString(backup.Object, "status", "phase"); phase != "Completed" {
		why := reason.StandbyNotRemoved.Messagef("nothing is removed: the Backup %s is %s, so it can lack objects that exist", backup.GetName(), phase)

		return nil, append(left, why), nil
	}
	items, err := c.backedUp(ctx, backup)
	if err != nil {
		return nil, left, err
	}
	names := adoption.BackedUpNamespaces(r)
	isBackedUp := func(r xp.Ref) bool {
		if from, ok := names[r.Namespace]; ok {
			r.Namespace = from
		}
		_, ok := items[r.ID()]

		return ok
	}
	for _, u := range old {
		if isBackedUp(xp.RefTo(u)) {
			continue // The errors of the restore have why it is not refreshed.
		}
		switch why, err := c.removeStandby(ctx, key, u); {
		case err != nil:
			return removed, left, err
		case why != "":
			left = append(left, reason.StandbyNotRemoved.Messagef("%s: the backup does not have it, and it stays, since %s", xp.String(u), why))
		default:
			removed = append(removed, xp.RefTo(u))
			secret, err := c.removeStandbySecret(ctx, u, isBackedUp)
			if err != nil {
				return removed, left, err
			}
			removed = append(removed, secret...)
		}
	}

	return removed, left, nil
}

// oldStandbys returns what restores of the schedule brought into quarantine before a Restore: MRs,
// XRs, claims. promoted are those of the schedule whose quarantine a user has ended. unread are the
// groups that could not be read, with the reason.
func (c *Cluster) oldStandbys(
	ctx context.Context, key adoption.Key, schedule, restore string,
) (old, promoted []*unstructured.Unstructured, unread map[string]string, err error) {
	if schedule == "" {
		return nil, nil, nil, nil // Nothing shows that two backups are of the same objects.
	}
	unread = map[string]string{}
	for _, category := range []string{xp.CategoryManaged, xp.CategoryComposite, xp.CategoryClaim} {
		kinds, broken, err := c.Kinds(ctx, category)
		if err != nil {
			return nil, nil, nil, err
		}
		for gv, why := range broken {
			// Only extension API servers have these groups (kubernetes api-approved).
			if group, _, _ := strings.Cut(gv, "/"); !strings.HasSuffix(group, ".k8s.io") {
				unread[gv] = why
			}
		}
		for _, gvk := range kinds {
			err := c.Each(ctx, gvk, "", metav1.ListOptions{LabelSelector: xp.LabelRestore}, func(u *unstructured.Unstructured) {
				if s, ok := key.StandbyOf(u); ok && s.Schedule == schedule && s.Restore != restore {
					old = append(old, u)
				} else if key.IsPromoted(u, schedule) {
					promoted = append(promoted, u)
				}
			})
			if err != nil && !isUnserved(err) {
				return nil, nil, nil, fmt.Errorf("cannot find out what the backup does not have: %w", err)
			}
		}
	}

	return old, promoted, unread, nil
}

// removeStandby removes an object, or returns why it stays.
func (c *Cluster) removeStandby(ctx context.Context, key adoption.Key, u *unstructured.Unstructured) (why string, err error) {
	for range attempts {
		s, ok := key.StandbyOf(u)
		if !ok {
			return "it is not in quarantine any more", nil
		}
		if s.ChangedBy != "" {
			return s.ChangedBy + " has changed it since; delete it without its external resource", nil
		}
		err := c.Retire(ctx, u)
		if err == nil {
			return "", nil
		}
		if !apierrors.IsConflict(err) {
			return err.Error(), nil
		}
		now, err := c.Get(ctx, xp.RefTo(u))
		if isUnserved(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		u = now
	}

	return "other writers change it all the time", nil
}

// removeStandbySecret removes the connection secret of a removed object, if a restore brought that
// too, the backup does not have it, and nothing else owns it.
func (c *Cluster) removeStandbySecret(ctx context.Context, of *unstructured.Unstructured, isBackedUp func(xp.Ref) bool) ([]xp.Ref, error) {
	r, ok := xp.SecretRef(of)
	if !ok || isBackedUp(r) {
		return nil, nil
	}
	u, err := c.Get(ctx, r)
	if isUnserved(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	owner := metav1.GetControllerOf(u)
	if owner == nil && of.GetNamespace() == "" {
		return nil, nil // Only the Secret itself would prove that a cluster-scoped object owns it.
	}
	if !xp.IsConnectionSecret(u) || xp.Label(u, xp.LabelRestore) == "" || owner != nil && owner.UID != of.GetUID() {
		return nil, nil
	}
	if err := c.remove(ctx, u, u.GetResourceVersion()); err != nil {
		return nil, err
	}

	return []xp.Ref{r}, nil
}
