package restoreitem

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A SourceCluster is a cluster that restores what was backed up in another one.
type SourceCluster interface {
	// UID identifies this cluster.
	UID(ctx context.Context) (string, error)
	// Restore returns a Restore with all its fields.
	Restore(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error)
	// LeaveReceipt tells the cluster with the UID source, by the bucket, that this cluster adopts
	// its backup. It returns false if the bucket is read-only here.
	LeaveReceipt(ctx context.Context, velero, source string, handover bool, restore *unstructured.Unstructured) (bool, error)
	// Collisions returns the signs that another cluster manages what a Restore brings back.
	Collisions(ctx context.Context, velero, restore string) ([]reason.Message, error)
}

// A sourceCheck looks for other clusters that can write to the same external resources. It serves
// one restore.
type sourceCheck struct {
	cluster SourceCluster

	mu sync.Mutex
	// own is the UID of this cluster, and receipt is true once a receipt was left.
	own     string
	receipt bool
	// collisions are those that were found, and looked is true then.
	collisions []reason.Message
	looked     bool
}

// checkSource refuses an item of a handover's backup if something in its source cluster could still
// write to its external resource. It refuses no item of another backup: after a disaster nobody can
// ask the source. Before the first item that is not in quarantine it leaves a receipt.
func (a *Adopt) checkSource(i *item) error {
	from := xp.SourceOf(i.original)
	handover := from.Handover != ""
	if a.source == nil || from.Cluster == "" && !handover {
		return nil
	}
	a.source.mu.Lock()
	defer a.source.mu.Unlock()
	ctx := context.Background()
	if a.source.own == "" {
		uid, err := a.source.cluster.UID(ctx)
		switch {
		case err == nil:
			a.source.own = uid
		case handover:
			return apiErrorf("cannot restore %s: %w", xp.String(i.original), err)
		default:
			return nil
		}
	}
	if from.Cluster == a.source.own {
		return nil
	}
	if from.Busy != "" && !i.settings.SourceIsGone {
		return reason.SourceNotQuiet.Errorf("cannot restore %s: it belongs to a handover, and its source cluster could still write to its external resource when "+
			"it was backed up (%.40q). Run hold there until it succeeds, back up again, and restore that; or, if that cluster is gone, restore with the setting "+
			`%s: "true"`, xp.String(i.original), from.Busy, setting.NameSource)
	}
	if i.isQuarantined() {
		return nil // Nothing is adopted.
	}

	return a.source.leaveReceipt(ctx, i, from.Cluster, handover)
}

// leaveReceipt leaves a receipt once. Only a handover needs one.
func (s *sourceCheck) leaveReceipt(ctx context.Context, i *item, source string, handover bool) error {
	if s.receipt || source == "" || s.own == "" {
		return nil
	}
	restore, err := s.cluster.Restore(ctx, i.restore.Namespace, i.restore.Name)
	if err != nil && handover {
		return apiErrorf("cannot restore %s: %w", xp.String(i.original), err)
	}
	s.receipt = true
	left := false
	if err == nil {
		left, err = s.cluster.LeaveReceipt(ctx, i.restore.Namespace, source, handover, restore)
	}
	why := "the BackupStorageLocation is read-only here"
	if err != nil {
		why = err.Error()
	}
	switch {
	case left:
	case handover:
		i.warn(reason.ReceiptMissing.Messagef("The source cluster of the handover can't see that this cluster adopts its backup, so \"release --handover\" is not "+
			"refused there: %s", why))
	default:
		i.log.WithField("cause", why).Info("The cluster of the backup can't see that this cluster adopts it")
	}

	return nil
}
