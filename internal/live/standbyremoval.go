package live

import (
	"context"
	"fmt"

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
// external resources stay. It leaves, with the reason, what another writer has changed. Marks count
// if the key signed them.
func (c *Cluster) RemoveStandbys(ctx context.Context, key adoption.Key, velero, restore string) (removed []xp.Ref, left []reason.Message, err error) {
	r, backup, err := c.restoreAndBackup(ctx, velero, restore)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot find out what the backup does not have: %w", err)
	}
	old, err := c.oldStandbys(ctx, key, adoption.ScheduleOf(backup), velero+"/"+restore)
	if err != nil || len(old) == 0 {
		return nil, nil, err
	}
	if phase, _, _ := unstructured.NestedString(backup.Object, "status", "phase"); phase != "Completed" {
		return nil, []reason.Message{reason.StandbyNotRemoved.Messagef("nothing is removed: the Backup %s is %s, so it can lack objects that exist", backup.GetName(), phase)}, nil
	}
	items, err := c.backedUp(ctx, backup)
	if err != nil {
		return nil, nil, err
	}
	names := adoption.BackedUpNamespaces(r)
	for _, u := range old {
		in := xp.RefTo(u)
		if from, ok := names[in.Namespace]; ok {
			in.Namespace = from
		}
		if items[in.ID()] {
			continue // The errors of the restore have why it is not refreshed.
		}
		switch why, err := c.removeStandby(ctx, key, u); {
		case err != nil:
			return removed, left, err
		case why != "":
			left = append(left, reason.StandbyNotRemoved.Messagef("%s: the backup does not have it, and it stays, since %s", xp.String(u), why))
		default:
			removed = append(removed, xp.RefTo(u))
		}
	}

	return removed, left, nil
}

// oldStandbys returns what restores of the schedule brought into quarantine before a Restore:
// MRs, XRs, claims.
func (c *Cluster) oldStandbys(ctx context.Context, key adoption.Key, schedule, restore string) ([]*unstructured.Unstructured, error) {
	if schedule == "" {
		return nil, nil // Nothing says that two backups are of the same objects.
	}
	var old []*unstructured.Unstructured
	for _, category := range []string{xp.CategoryManaged, xp.CategoryComposite, xp.CategoryClaim} {
		kinds, _, err := c.Kinds(ctx, category)
		if err != nil {
			return nil, err
		}
		for _, gvk := range kinds {
			err := c.Each(ctx, gvk, "", metav1.ListOptions{LabelSelector: xp.LabelRestore}, func(u *unstructured.Unstructured) {
				if s, ok := key.StandbyOf(u); ok && s.Schedule == schedule && s.Restore != restore {
					old = append(old, u)
				}
			})
			if err != nil && !isUnserved(err) {
				return nil, fmt.Errorf("cannot find out what the backup does not have: %w", err)
			}
		}
	}

	return old, nil
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
			return err.Error(), nil //nolint:nilerr // The others can be removed.
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
