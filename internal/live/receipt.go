package live

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// receiptTTL is how long Velero keeps a receipt, and abortTTL how long the record of an abort, which
// has to outlast the backups that it is about.
const (
	receiptTTL = 30 * 24 * time.Hour
	abortTTL   = 365 * 24 * time.Hour
)

// Receipts returns what other clusters have begun to adopt of the backups of the cluster with a UID.
// It ignores receipts that it can't read.
func (c *Cluster) Receipts(ctx context.Context, velero, source string) ([]adoption.Receipt, error) {
	var all []adoption.Receipt
	err := c.Each(ctx, adoption.KindBackup, velero, metav1.ListOptions{LabelSelector: adoption.LabelReceipt}, func(u *unstructured.Unstructured) {
		if r, ok := adoption.ReceiptIn(u); ok && r.Source == source && r.Cluster != source {
			all = append(all, r)
		}
	})
	if err != nil && !isUnserved(err) {
		return nil, fmt.Errorf("cannot read the receipts of other clusters: %w", err)
	}

	return all, nil
}

// Collisions returns the signs that another cluster manages what a Restore brings back.
func (c *Cluster) Collisions(ctx context.Context, velero, restore string) ([]reason.Message, error) {
	u, err := c.Restore(ctx, velero, restore)
	if err != nil {
		return nil, fmt.Errorf("cannot look for other clusters: %w", err)
	}
	own, err := c.UID(ctx)
	if err != nil {
		return nil, err
	}
	var backups []*unstructured.Unstructured
	err = c.Each(ctx, adoption.KindBackup, velero, metav1.ListOptions{}, func(u *unstructured.Unstructured) { backups = append(backups, u) })
	if err != nil {
		return nil, fmt.Errorf("cannot look for other clusters: %w", err)
	}

	return adoption.Collisions(own, u, backups), nil
}

// Aborts returns the records that the cluster with the UID source has aborted a handover since it
// began the backup of a Restore.
func (c *Cluster) Aborts(ctx context.Context, velero, source string, restore *unstructured.Unstructured) ([]adoption.Receipt, error) {
	name, _, _ := unstructured.NestedString(restore.Object, "spec", "backupName")
	backup, err := c.Get(ctx, backupRef(velero, name))
	if err != nil {
		return nil, fmt.Errorf("cannot find out whether the handover was aborted: %w", err)
	}
	var all []adoption.Receipt
	err = c.Each(ctx, adoption.KindBackup, velero, metav1.ListOptions{LabelSelector: adoption.LabelReceipt}, func(u *unstructured.Unstructured) {
		if r, ok := adoption.ReceiptIn(u); ok && r.IsAbortOf(source, backup) {
			all = append(all, r)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("cannot find out whether the handover was aborted: %w", err)
	}

	return all, nil
}

// LeaveReceipt writes a receipt to the bucket of the backup, unless there is one of this Restore.
// source is the UID of the cluster of the backup. If awaited is true, it waits until Velero has
// brought to this cluster all that was in the bucket before the receipt: either the source sees the
// receipt before it aborts the handover, or this cluster sees the abort. It returns false if the
// bucket is read-only here.
func (c *Cluster) LeaveReceipt(ctx context.Context, velero, source string, awaited bool, restore *unstructured.Unstructured) (bool, error) {
	name, _, _ := unstructured.NestedString(restore.Object, "spec", "backupName")
	backup, err := c.Get(ctx, backupRef(velero, name))
	if err != nil {
		return false, fmt.Errorf("cannot leave a receipt: %w", err)
	}
	location, _, _ := unstructured.NestedString(backup.Object, "spec", "storageLocation")
	bsl, err := c.Get(ctx, locationRef(velero, location))
	if err != nil {
		return false, fmt.Errorf("cannot leave a receipt: %w", err)
	}
	if mode, _, _ := unstructured.NestedString(bsl.Object, "spec", "accessMode"); mode == "ReadOnly" {
		return false, nil
	}
	uid, err := c.UID(ctx)
	if err != nil {
		return false, err
	}
	receipt := "receipt-" + string(restore.GetUID())
	if err := c.leave(ctx, velero, location, receipt, receiptTTL, adoption.ReceiptOf(backup, restore, source, uid, awaited)); err != nil {
		return false, fmt.Errorf("cannot leave a receipt for the cluster of the backup %s: %w", name, err)
	}
	if awaited {
		err = c.awaitSync(ctx, velero, location, receipt)
	}

	return err == nil, err
}

// leave creates a Backup without items that is a receipt, unless it exists.
func (c *Cluster) leave(ctx context.Context, velero, location, name string, ttl time.Duration, receipt adoption.Receipt) error {
	content, err := json.Marshal(receipt)
	if err != nil {
		return fmt.Errorf("cannot encode a receipt: %w", err)
	}
	gvr, _, err := c.Resource(adoption.KindBackup)
	if err != nil {
		return err
	}
	u := receiptOf(velero, location, name, ttl, string(content))
	err = c.withRetry(ctx.Done(), apiServerName, func() error {
		_, err := c.client.Resource(gvr).Namespace(velero).Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager})

		return err //nolint:wrapcheck // It is wrapped below.
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create the Backup %s/%s: %w", velero, name, err)
	}

	return nil
}

func backupRef(velero, name string) xp.Ref {
	return xp.Ref{APIVersion: adoption.KindBackup.GroupVersion().String(), Kind: adoption.KindBackup.Kind, Namespace: velero, Name: name}
}

func locationRef(velero, name string) xp.Ref {
	return xp.Ref{APIVersion: adoption.KindBackup.GroupVersion().String(), Kind: "BackupStorageLocation", Namespace: velero, Name: name}
}

// receiptOf returns a Backup that selects nothing and has the content in an annotation.
func receiptOf(velero, location, name string, ttl time.Duration, content string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": adoption.KindBackup.GroupVersion().String(), "kind": adoption.KindBackup.Kind,
		"spec": map[string]any{
			"storageLocation": location, "ttl": ttl.String(), "snapshotVolumes": false, "includeClusterResources": false,
			"includedNamespaces": []any{velero}, "includedResources": []any{"configmaps"},
			"labelSelector": map[string]any{"matchLabels": map[string]any{adoption.LabelReceipt: "nothing"}},
		},
	}}
	u.SetNamespace(velero)
	u.SetName(name)
	u.SetLabels(map[string]string{adoption.LabelReceipt: "true"})
	u.SetAnnotations(map[string]string{adoption.AnnotationReceipt: content})

	return u
}
