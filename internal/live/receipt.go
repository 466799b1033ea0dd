package live

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// KindBackup is Velero's kind Backup.
var KindBackup = schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Backup"}

// A receipt is a Backup without items. Velero writes its annotations to the bucket, and its sync
// brings them to each cluster that shares the bucket (velero pkg/controller/
// backup_sync_controller.go), so the plugin needs no access to the bucket.
const (
	labelReceipt      = "velero.crossplane.x-k8s.io/receipt"
	annotationReceipt = "velero.crossplane.x-k8s.io/receipt"
	// receiptTTL is how long Velero keeps a receipt.
	receiptTTL = 30 * 24 * time.Hour
)

// A Receipt says that a cluster has begun to adopt what another one had backed up for a handover.
type Receipt struct {
	// Source and Cluster are the UIDs of kube-system in the cluster of the backup, and in the one
	// that has restored it.
	Source  string `json:"source"`
	Cluster string `json:"cluster"`
	// Backup and Restore are their names. Started is when the backup began.
	Backup  string    `json:"backup"`
	Restore string    `json:"restore"`
	Started time.Time `json:"started"`
}

// Receipts returns what other clusters have begun to adopt of the backups of the cluster with a UID.
// It ignores receipts that it can't read.
func (c *Cluster) Receipts(ctx context.Context, velero, source string) ([]Receipt, error) {
	var all []Receipt
	err := c.Each(ctx, KindBackup, velero, metav1.ListOptions{LabelSelector: labelReceipt}, func(u *unstructured.Unstructured) {
		var r Receipt
		if json.Unmarshal([]byte(xp.Annotation(u, annotationReceipt)), &r) == nil && r.Source == source && r.Cluster != source {
			all = append(all, r)
		}
	})
	if err != nil && !isUnserved(err) {
		return nil, fmt.Errorf("cannot read the receipts of other clusters: %w", err)
	}

	return all, nil
}

// LeaveReceipt writes a receipt to the bucket of the backup, unless there is one of this Restore.
// It returns false if the bucket is read-only here.
func (c *Cluster) LeaveReceipt(ctx context.Context, velero, source string, restore *unstructured.Unstructured) (bool, error) {
	name, _, _ := unstructured.NestedString(restore.Object, "spec", "backupName")
	backup, err := c.Get(ctx, xp.Ref{APIVersion: KindBackup.GroupVersion().String(), Kind: KindBackup.Kind, Namespace: velero, Name: name})
	if err != nil {
		return false, fmt.Errorf("cannot leave a receipt: %w", err)
	}
	location, _, _ := unstructured.NestedString(backup.Object, "spec", "storageLocation")
	bsl, err := c.Get(ctx, xp.Ref{APIVersion: KindBackup.GroupVersion().String(), Kind: "BackupStorageLocation", Namespace: velero, Name: location})
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
	r := Receipt{Source: source, Cluster: uid, Backup: name, Restore: restore.GetName()}
	started, _, _ := unstructured.NestedString(backup.Object, "status", "startTimestamp")
	r.Started, _ = time.Parse(time.RFC3339, started)
	content, err := json.Marshal(r)
	if err != nil {
		return false, fmt.Errorf("cannot encode a receipt: %w", err)
	}
	u := receiptOf(velero, location, "receipt-"+string(restore.GetUID()), string(content))
	gvr, _, err := c.Resource(KindBackup)
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
		"apiVersion": KindBackup.GroupVersion().String(), "kind": KindBackup.Kind,
		"spec": map[string]any{
			"storageLocation": location, "ttl": receiptTTL.String(), "snapshotVolumes": false, "includeClusterResources": false,
			"includedNamespaces": []any{velero}, "includedResources": []any{"configmaps"},
			"labelSelector": map[string]any{"matchLabels": map[string]any{labelReceipt: "nothing"}},
		},
	}}
	u.SetNamespace(velero)
	u.SetName(name)
	u.SetLabels(map[string]string{labelReceipt: "true"})
	u.SetAnnotations(map[string]string{annotationReceipt: content})

	return u
}
