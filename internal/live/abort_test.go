package live

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var locations = adoption.KindBackup.GroupVersion().WithResource("backupstoragelocations")

// A bucketVelero is Velero in a cluster: it writes Backups to the bucket after a while, and brings
// what others have written there. Times are since its start.
type bucketVelero struct {
	stored time.Duration
	phase  string
	// period is the time between the begins of two synchronizations, each of which lasts for lasting;
	// 0 for none.
	period, lasting time.Duration
	// receipt is when the receipt of another cluster is in the bucket.
	receipt time.Duration
}

// run lets Velero work until the test ends.
func (v bucketVelero) run(t *testing.T, s *server, receipt *unstructured.Unstructured) {
	t.Helper()
	go func() {
		isListed := false
		for at := time.Duration(0); t.Context().Err() == nil; at += time.Second {
			if at == v.stored {
				for _, u := range s.ofKind(t, backups) {
					s.put(backups, xptest.With(u, xptest.Field(v.phase, "status", "phase")))
				}
			}
			if v.period > 0 && at%v.period == 0 {
				isListed = at >= v.receipt
			}
			if v.period > 0 && at%v.period == v.lasting {
				if isListed {
					s.put(backups, receipt)
				}
				s.put(locations, xptest.With(s.get(t, locations, "velero", "default"), xptest.Field(at.String(), "status", "lastSyncedTime")))
			}
			_ = sleep(t.Context(), time.Second)
		}
	}()
}

func (s *server) ofKind(t *testing.T, gvr schema.GroupVersionResource) []*unstructured.Unstructured {
	t.Helper()
	list, err := s.Tracker().List(gvr, adoption.KindBackup, "velero")
	if err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for _, u := range list.(*unstructured.UnstructuredList).Items { //nolint:forcetypeassert // The tracker returns only such lists.
		all = append(all, &u)
	}

	return all
}

func backupIn(location, name string, o ...xptest.Option) *unstructured.Unstructured {
	return xptest.Object("velero.io/v1", "Backup", "velero", name, append(o, xptest.Field(location, "spec", "storageLocation"))...)
}

// One of two clusters that write to the bucket and then wait sees what the other has written.
func TestAwaitSync(t *testing.T) {
	receipt := backupIn("default", "receipt-r1", xptest.Labelled(adoption.LabelReceipt, "true"), xptest.Annotated(adoption.AnnotationReceipt,
		`{"source":"here","cluster":"there","backup":"move","restore":"r","started":"2026-01-02T03:04:05Z"}`))
	cases := map[string]struct {
		reason string
		velero bucketVelero
		// slow is the period that the location sets.
		slow string
		seen bool
		// within is the longest time that it may take.
		within time.Duration
		err    string
	}{
		"Before": {
			reason: "The receipt is in the bucket before the record.", seen: true, within: 125 * time.Second,
			velero: bucketVelero{stored: 5 * time.Second, phase: "Completed", period: time.Minute, receipt: 4 * time.Second},
		},
		"DuringASynchronization": {
			reason: "A synchronization had listed the bucket before the receipt was there, and ends after the record is.", seen: true, within: 3 * time.Minute,
			velero: bucketVelero{stored: 70 * time.Second, phase: "Completed", period: time.Minute, lasting: 30 * time.Second, receipt: 65 * time.Second},
		},
		"After": {
			reason: "The other cluster sees the record then.", within: 125 * time.Second,
			velero: bucketVelero{stored: 5 * time.Second, phase: "Completed", period: time.Minute, receipt: time.Hour},
		},
		"Slow": {
			reason: "A location can be synchronized less often.", slow: "10m", seen: true, within: 21 * time.Minute,
			velero: bucketVelero{stored: 5 * time.Second, phase: "Completed", period: 10 * time.Minute, receipt: 4 * time.Second},
		},
		"Never": {
			reason: "It must not wait for ever.", within: 6 * time.Minute, velero: bucketVelero{stored: 5 * time.Second, phase: "Completed"},
			err: "cannot wait until Velero has synchronized the BackupStorageLocation default: it has not done so for 5m0s",
		},
		"NotStored": {
			reason: "Without Velero nothing is in the bucket.", within: 6 * time.Minute, velero: bucketVelero{stored: time.Hour, period: time.Minute, receipt: time.Hour},
			err: "it has not done so for 5m0s",
		},
		"Failed": {
			reason: "Velero could not write it.", within: 10 * time.Second, velero: bucketVelero{stored: 5 * time.Second, phase: "PartiallyFailed", period: time.Minute, receipt: time.Hour},
			err: "to the bucket: it is PartiallyFailed",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				location := xptest.Object("velero.io/v1", "BackupStorageLocation", "velero", "default", xptest.Field(tc.slow, "spec", "backupSyncPeriod"))
				s := handoverServer(backupIn("default", "aborted-1"), location, kubeSystem("here"))
				tc.velero.run(t, s, receipt)
				began, c := time.Now(), s.cluster()
				err := c.AwaitSync(t.Context(), "velero", map[string]string{"default": "aborted-1"})
				if took := time.Since(began); took > tc.within || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\nerror %v after %s", tc.reason, err, took)
				}
				receipts, err := c.Receipts(t.Context(), "velero", "here")
				if seen := len(receipts) > 0; seen != tc.seen || err != nil {
					t.Errorf("%s\nseen: %t, error %v", tc.reason, seen, err)
				}
			})
		})
	}
}

// A receipt that is awaited must be in the bucket, and all that was there before it be here.
func TestLeaveReceiptAwaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := handoverServer(backupIn("default", "move"), xptest.Object("velero.io/v1", "BackupStorageLocation", "velero", "default"), kubeSystem("there"))
		abort := backupIn("default", "aborted-1", xptest.Labelled(adoption.LabelReceipt, "true"),
			xptest.Annotated(adoption.AnnotationReceipt, `{"source":"here","cluster":"here","aborted":true}`))
		bucketVelero{stored: 10 * time.Second, phase: "Completed", period: time.Minute, receipt: 5 * time.Second}.run(t, s, abort)
		restore := xptest.Object("velero.io/v1", "Restore", "velero", "moved", xptest.UID("r1"), xptest.Field("move", "spec", "backupName"))
		c := s.cluster()
		if left, err := c.LeaveReceipt(t.Context(), "velero", "here", true, restore); !left || err != nil {
			t.Fatalf("left %t, error %v", left, err)
		}
		aborts, err := c.Aborts(t.Context(), "velero", "here", restore)
		if len(aborts) != 1 || err != nil {
			t.Errorf("aborts %v, error %v", aborts, err)
		}
	})
}

func TestRecordAbort(t *testing.T) {
	since := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	at := func(hour int) xptest.Option {
		return xptest.Field(since.Add(time.Duration(hour)*time.Hour).Format(time.RFC3339), "metadata", "creationTimestamp")
	}
	early := xptest.Field(since.Add(-4*time.Minute).Format(time.RFC3339), "metadata", "creationTimestamp")
	label := xptest.Labelled(adoption.LabelReceipt, "true")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "backups"}, "", errors.New("no"))
	cases := map[string]struct {
		reason  string
		backups []*unstructured.Unstructured
		failure error
		// want are the locations with a record.
		want []string
		err  string
	}{
		"None":    {reason: "Nobody can restore what is not backed up."},
		"Older":   {reason: "An older backup is none of this handover.", backups: []*unstructured.Unstructured{backupIn("default", "nightly", at(-1))}},
		"Receipt": {reason: "A receipt has no items.", backups: []*unstructured.Unstructured{backupIn("default", "receipt-r", at(1), label)}},
		"Other": {
			reason:  "It has nothing of the namespace.",
			backups: []*unstructured.Unstructured{backupIn("default", "other", at(1), xptest.Field([]any{"team-b"}, "spec", "includedNamespaces"))},
		},
		"Glob": {
			reason:  "Its spec keeps the glob.",
			backups: []*unstructured.Unstructured{backupIn("default", "teams", at(1), xptest.Field([]any{"team-*"}, "spec", "includedNamespaces"))}, want: []string{"default"},
		},
		"Skewed": {reason: "The clocks of users differ from that of the API server.", backups: []*unstructured.Unstructured{backupIn("default", "move", early)}, want: []string{"default"}},
		"Some": {
			reason:  "Another cluster may restore any of them.",
			backups: []*unstructured.Unstructured{backupIn("default", "move", at(1)), backupIn("default", "again", at(2)), backupIn("second", "copy", at(3))}, want: []string{"default", "second"},
		},
		"Forbidden": {
			reason: "The error must name the location.", backups: []*unstructured.Unstructured{backupIn("default", "move", at(1))}, failure: forbidden,
			err: "cannot record the abort in the BackupStorageLocation default",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := handoverServer(append(tc.backups, kubeSystem("here"))...)
			if tc.failure != nil {
				s.failOn("create", "backups", 1, tc.failure)
			}
			records, err := s.cluster().RecordAbort(t.Context(), "velero", since, []string{"team-a"})
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\nerror %v", tc.reason, err)
			}
			var got []string
			for _, u := range s.ofKind(t, backups) {
				r, ok := adoption.ReceiptIn(u)
				if !ok {
					continue
				}
				location, _, _ := unstructured.NestedString(u.Object, "spec", "storageLocation")
				got = append(got, location)
				if records[location] != u.GetName() || !r.Aborted || r.Source != "here" || r.Cluster != "here" || !slices.Equal(r.Namespaces, []string{"team-a"}) {
					t.Errorf("%s\nthe records are %v, and %s is %+v", tc.reason, records, u.GetName(), r)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The own cluster's record of an abort is no receipt of another one.
func TestReceiptsIgnoreAborts(t *testing.T) {
	s := handoverServer(backupIn("default", "move", xptest.Field("2026-01-02T03:04:05Z", "metadata", "creationTimestamp")), kubeSystem("here"))
	if _, err := s.cluster().RecordAbort(t.Context(), "velero", time.Time{}, nil); err != nil {
		t.Fatal(err)
	}
	if receipts, err := s.cluster().Receipts(t.Context(), "velero", "here"); len(receipts) > 0 || err != nil {
		t.Errorf("receipts %v, error %v", receipts, err)
	}
}
