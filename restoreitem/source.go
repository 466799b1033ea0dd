package restoreitem

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
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
	// its backup. If awaited is true, it returns when Aborts returns each abort of the source that is
	// older than the receipt. It returns false if the bucket is read-only here.
	LeaveReceipt(ctx context.Context, velero, source string, awaited bool, restore *unstructured.Unstructured) (bool, error)
	// Aborts returns the records that the cluster with the UID source has aborted a handover since it
	// began the backup of a Restore.
	Aborts(ctx context.Context, velero, source string, restore *unstructured.Unstructured) ([]adoption.Receipt, error)
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
	// restore is the Restore with all its fields, and aborts are those of its handover.
	restore *unstructured.Unstructured
	aborts  []adoption.Receipt
	// collisions are those that were found, and looked is true then.
	collisions []reason.Message
	looked     bool
}

// checkSource refuses an item of a handover's backup if something in its source cluster could still
// write to its external resource. It refuses no item of another backup: after a disaster nobody can
// ask the source. Before the first item of a handover, or that is not in quarantine, it leaves a
// receipt.
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
	if err := refuseUnquiet(i, from); err != nil {
		return err
	}
	if handover && !i.settings.SourceIsGone {
		return a.source.takeOver(ctx, i, from.Cluster) // Also in quarantine: a user can release it at any time.
	}
	if !i.isQuarantined() {
		a.source.leaveReceipt(ctx, i, from.Cluster)
	}

	return nil
}

// refuseUnquiet refuses an item of a handover if its source cluster could still write to its external
// resource, or is unknown, unless a user says that it is gone.
func refuseUnquiet(i *item, from xp.Source) error {
	switch {
	case i.settings.SourceIsGone:
		return nil
	case from.Cluster == "":
		return reason.SourceNotQuiet.Errorf("cannot restore %s: it belongs to a handover, and the backup could not read which cluster it is from, so nobody "+
			"can tell whether that has aborted the handover. Back up again there, and restore that; or, if that cluster is gone, restore with the setting "+
			`%s: "true"`, xp.String(i.original), setting.NameSource)
	case from.Busy != "":
		return reason.SourceNotQuiet.Errorf("cannot restore %s: it belongs to a handover, and its source cluster could still write to its external resource when "+
			"it was backed up (%.40q). Run hold there until it succeeds, back up again, and restore that; or, if that cluster is gone, restore with the setting "+
			`%s: "true"`, xp.String(i.original), from.Busy, setting.NameSource)
	}

	return nil
}

// takeOver leaves a receipt for the source of a handover, and refuses an item if the source has
// aborted the handover. It looks before it leaves the receipt, since most aborts are older, and after
// it: one of two clusters that write and then read sees what the other has written.
func (s *sourceCheck) takeOver(ctx context.Context, i *item, source string) error {
	if s.restore == nil {
		if err := s.readAborts(ctx, i, source); err != nil {
			return err
		}
	}
	if err := s.refuseAborted(i); err != nil || s.receipt {
		return err
	}
	i.log.Info("Leaving a receipt for the source cluster of the handover, and waiting for up to two minutes until Velero has synchronized the bucket")
	left, err := s.cluster.LeaveReceipt(ctx, i.restore.Namespace, source, true, s.restore)
	if !left {
		i.warn(reason.ReceiptMissing.Messagef("The source cluster of the handover may not see that this cluster adopts its backup, so \"release --handover\" may "+
			"not be refused there: %s", whyNoReceipt(err)))
	}
	if err := s.readAborts(ctx, i, source); err != nil {
		return err
	}
	s.receipt = true

	return s.refuseAborted(i)
}

func (s *sourceCheck) readAborts(ctx context.Context, i *item, source string) error {
	restore, err := s.cluster.Restore(ctx, i.restore.Namespace, i.restore.Name)
	if err == nil {
		s.aborts, err = s.cluster.Aborts(ctx, i.restore.Namespace, source, restore)
	}
	if err != nil {
		return apiErrorf("cannot restore %s: %w", xp.String(i.original), err)
	}
	s.restore = restore

	return nil
}

func (s *sourceCheck) refuseAborted(i *item) error {
	for _, r := range s.aborts {
		if r.CoversObject(i.original) {
			return reason.HandoverAborted.Errorf("cannot restore %s: its source cluster has aborted the handover at %s, after the backup, and manages its external "+
				"resource. Run hold there until it succeeds, back up again, and restore that; or, if that cluster is gone, restore with the setting "+
				`%s: "true"`, xp.String(i.original), r.Started.UTC().Format(time.RFC3339), setting.NameSource)
		}
	}

	return nil
}

// leaveReceipt leaves a receipt once. A restore does not depend on it if the source is lost, or
// unknown.
func (s *sourceCheck) leaveReceipt(ctx context.Context, i *item, source string) {
	if s.receipt || source == "" || s.own == "" {
		return
	}
	s.receipt = true
	left := false
	restore, err := s.cluster.Restore(ctx, i.restore.Namespace, i.restore.Name)
	if err == nil {
		left, err = s.cluster.LeaveReceipt(ctx, i.restore.Namespace, source, false, restore)
	}
	if !left {
		i.log.WithField("cause", whyNoReceipt(err)).Info("The cluster of the backup can't see that this cluster adopts it")
	}
}

func whyNoReceipt(err error) string {
	if err == nil {
		return "the BackupStorageLocation is read-only here"
	}

	return err.Error()
}
