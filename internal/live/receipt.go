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

// receiptTTL is how long Velero keeps a receipt.
const receiptTTL = 30 * 24 * time.Hour

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

// LeaveReceipt writes a receipt to the bucket of the backup, unless there is one of this Restore.
// source is the UID of the cluster of the backup. It returns false if the bucket is read-only here.
func (c *Cluster) LeaveReceipt(ctx context.Context, velero, source string, handover bool, restore *unstructured.Unstructured) (bool, error) {
	name, _, _ := unstructured.NestedString(restore.Object, "spec", "backupName")
	backup, err := c.Get(ctx, xp.Ref{APIVersion: adoption.KindBackup.GroupVersion().String(), Kind: adoption.KindBackup.Kind, Namespace: velero, Name: name})
	if err != nil {
		return false, fmt.Errorf("cannot leave a receipt: %w", err)
	}
	location, _, _ := unstructured.NestedString(backup.Object, "spec", "storageLocation")
	bsl, err := c.Get(ctx, xp.Ref{APIVersion: adoption.KindBackup.GroupVersion().String(), Kind: "BackupStorageLocation", Namespace: velero, Name: location})
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
	content, err := json.Marshal(adoption.ReceiptOf(backup, restore, source, uid, handover))
	if err != nil {
		return false, fmt.Errorf("cannot encode a receipt: %w", err)
	}
	u := receiptOf(velero, location, "receipt-"+string(restore.GetUID()), string(content))
	gvr, _, err := c.Resource(adoption.KindBackup)
	if err != nil {
		return false, err
	}
	err = c.withRetry(ctx.Done(), apiServerName, func() error {
		_, err := c.client.Resource(gvr).Namespace(velero).Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager})

		return err //nolint:wrapcheck // It is wrapped below.
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("cannot leave a receipt for the cluster of the backup %s: %w", name, err)
	}

	return true, nil
}

// receiptOf returns a Backup that selects nothing and has the content in an annotation.
func receiptOf(velero, location, name, content string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": adoption.KindBackup.GroupVersion().String(), "kind": adoption.KindBackup.Kind,
		"spec": map[string]any{
			"storageLocation": location, "ttl": receiptTTL.String(), "snapshotVolumes": false, "includeClusterResources": false,
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
