package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	// syncTimeout is how long to wait for Velero to synchronize the bucket. It does so once a minute,
	// unless a BackupStorageLocation sets a longer period.
	syncTimeout = 5 * time.Minute
	// periods is how many of these to wait at least.
	periods = 3
	// syncInterval is how often to look.
	syncInterval = time.Second
	// nameLength is that of the random part of a name.
	nameLength = 10
	// clockSkew is how much the clocks of the command and of the API server may differ.
	clockSkew = 5 * time.Minute
)

// RecordAbort records, in each bucket with a backup of namespaces that was begun since a time, that
// this cluster has aborted its handover of these. A cluster that restores such a backup later refuses
// it. It returns the records: the name of a Backup for each BackupStorageLocation. There are none if
// there is no such backup.
func (c *Cluster) RecordAbort(ctx context.Context, velero string, since time.Time, namespaces []string) (records map[string]string, err error) {
	uid, err := c.UID(ctx)
	if err != nil {
		return nil, err
	}
	records = map[string]string{}
	err = c.Each(ctx, adoption.KindBackup, velero, metav1.ListOptions{}, func(u *unstructured.Unstructured) {
		if xp.Label(u, adoption.LabelReceipt) == "" && adoption.CanHave(u, namespaces) && !u.GetCreationTimestamp().Time.Before(since.Add(-clockSkew)) {
			location, _, _ := unstructured.NestedString(u.Object, "spec", "storageLocation")
			records[location] = "aborted-" + rand.String(nameLength)
		}
	})
	if err != nil && !isUnserved(err) {
		return nil, fmt.Errorf("cannot record the abort: %w", err)
	}
	record := adoption.Receipt{Source: uid, Cluster: uid, Namespaces: namespaces, Aborted: true}
	for location, name := range records {
		if err := c.leave(ctx, velero, location, name, abortTTL, record); err != nil {
			return nil, fmt.Errorf("cannot record the abort in the BackupStorageLocation %s: %w", location, err)
		}
	}

	return records, nil
}

// AwaitSync waits until the records are in their buckets, and until Velero has brought to this
// cluster all that was in these before.
func (c *Cluster) AwaitSync(ctx context.Context, velero string, records map[string]string) error {
	for _, location := range slices.Sorted(maps.Keys(records)) {
		if err := c.awaitSync(ctx, velero, location, records[location]); err != nil {
			return err
		}
	}

	return nil
}

// awaitSync waits until a Backup is in the bucket, and until Velero has begun and ended to
// synchronize the bucket after that. Velero notes only the ends (velero
// pkg/controller/backup_sync_controller.go), so it waits for the second one.
func (c *Cluster) awaitSync(ctx context.Context, velero, location, backup string) error {
	stored, ends, last, timeout := false, 0, "", syncTimeout
	began := time.Now()
	err := wait.PollUntilContextCancel(ctx, syncInterval, true, func(ctx context.Context) (bool, error) {
		bsl, err := c.Get(ctx, locationRef(velero, location))
		if err != nil {
			return false, err
		}
		at, _, _ := unstructured.NestedString(bsl.Object, "status", "lastSyncedTime")
		if stored && at != last {
			ends++
		}
		last = at
		if !stored {
			if stored, err = c.isStored(ctx, backupRef(velero, backup)); err != nil {
				return false, err
			}
			period, _, _ := unstructured.NestedString(bsl.Object, "spec", "backupSyncPeriod")
			if d, err := time.ParseDuration(period); err == nil {
				timeout = max(timeout, periods*d)
			}
		}
		if ends < 2 && time.Since(began) > timeout {
			return false, fmt.Errorf("it has not done so for %s", timeout)
		}

		return ends == 2, nil
	})
	if err != nil {
		return fmt.Errorf("cannot wait until Velero has synchronized the BackupStorageLocation %s: %w", location, err)
	}

	return nil
}

// isStored reports whether Velero has written a Backup to the bucket.
func (c *Cluster) isStored(ctx context.Context, ref xp.Ref) (bool, error) {
	u, err := c.Get(ctx, ref)
	if err != nil {
		return false, err
	}
	switch phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); {
	case phase == "Completed":
		return true, nil
	case strings.Contains(phase, "Failed"):
		return false, fmt.Errorf("cannot write the Backup %s to the bucket: it is %s", ref.Name, phase)
	}

	return false, nil
}
