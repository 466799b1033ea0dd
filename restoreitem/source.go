package restoreitem

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A SourceCluster is the cluster that restores what another cluster hands over.
type SourceCluster interface {
	// UID identifies this cluster.
	UID(ctx context.Context) (string, error)
	// Restore returns a Restore with all its fields.
	Restore(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error)
	// LeaveReceipt tells the cluster with the UID source, by the bucket, that this cluster adopts
	// its backup. It returns false if the bucket is read-only here.
	LeaveReceipt(ctx context.Context, velero, source string, restore *unstructured.Unstructured) (bool, error)
}

// A sourceCheck checks the source cluster of a handover's backup. It serves one restore.
type sourceCheck struct {
	cluster SourceCluster

	mu sync.Mutex
	// own is the UID of this cluster, and receipt is true once a receipt was left.
	own     string
	receipt bool
}

// checkSource refuses an item of a handover's backup if something in its source cluster could still
// write to its external resource. It does not concern other backups: after a disaster nobody can
// ask the source. Before the first item is restored it leaves a receipt for the source cluster.
func (a *Adopt) checkSource(i *item) error {
	from := xp.SourceOf(i.original)
	if a.source == nil || from.Handover == "" {
		return nil
	}
	a.source.mu.Lock()
	defer a.source.mu.Unlock()
	ctx := context.Background()
	if a.source.own == "" {
		uid, err := a.source.cluster.UID(ctx)
		if err != nil {
			return apiErrorf("cannot restore %s: %w", xp.String(i.original), err)
		}
		a.source.own = uid
	}
	if from.Cluster == a.source.own {
		return nil // The handover was aborted, and this cluster is the source.
	}
	if from.Busy != "" && !i.settings.SourceIsGone {
		return reason.SourceNotQuiet.Errorf("cannot restore %s: it belongs to a handover, and its source cluster could still write to its external resource when "+
			"it was backed up (%.40q). Run hold there until it succeeds, back up again, and restore that; or, if that cluster is gone, restore with the setting "+
			`%s: "true"`, xp.String(i.original), from.Busy, setting.NameSource)
	}

	return a.source.leaveReceipt(ctx, i, from.Cluster)
}

// leaveReceipt leaves a receipt once.
func (s *sourceCheck) leaveReceipt(ctx context.Context, i *item, source string) error {
	if s.receipt || source == "" {
		return nil
	}
	restore, err := s.cluster.Restore(ctx, i.restore.Namespace, i.restore.Name)
	if err != nil {
		return apiErrorf("cannot restore %s: %w", xp.String(i.original), err)
	}
	left, err := s.cluster.LeaveReceipt(ctx, i.restore.Namespace, source, restore)
	s.receipt = true
	switch {
	case err != nil:
		i.warn(reason.ReceiptMissing.Messagef("The source cluster of the handover can't see that this cluster adopts its backup, so \"release --handover\" is not "+
			"refused there: %v", err))
	case !left:
		i.warn(reason.ReceiptMissing.Messagef("The source cluster of the handover can't see that this cluster adopts its backup, so \"release --handover\" is not " +
			"refused there: the BackupStorageLocation is read-only here"))
	}

	return nil
}
