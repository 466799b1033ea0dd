package hooks

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var (
	backups   = adoption.KindBackup.GroupVersion().WithResource("backups")
	locations = adoption.KindBackup.GroupVersion().WithResource("backupstoragelocations")
)

// backedUp returns a Backup that was begun an hour after the hold.
func backedUp() *unstructured.Unstructured {
	return xptest.Object("velero.io/v1", "Backup", "velero", "move", xptest.Field("default", "spec", "storageLocation"),
		xptest.Field("2026-01-02T04:04:05Z", "metadata", "creationTimestamp"))
}

// synchronize makes Velero store Backups at once, and synchronize the bucket at each look. The third
// synchronization brings what another cluster has left, if that is not nil.
func (s *server) synchronize(brought *unstructured.Unstructured) {
	s.PrependReactor("get", "backups", func(action clienttesting.Action) (bool, runtime.Object, error) {
		get := action.(clienttesting.GetActionImpl) //nolint:forcetypeassert // It is one.
		obj, err := s.Tracker().Get(get.GetResource(), get.GetNamespace(), get.GetName())
		if err != nil {
			return true, nil, err
		}

		return true, xptest.With(obj.(*unstructured.Unstructured), xptest.Field("Completed", "status", "phase")), nil //nolint:forcetypeassert // The tracker has no other type.
	})
	looks := 0
	s.PrependReactor("get", "backupstoragelocations", func(clienttesting.Action) (bool, runtime.Object, error) {
		looks++
		if looks == 3 && brought != nil {
			if err := s.Tracker().Create(backups, brought, "velero"); err != nil {
				return true, nil, err
			}
		}

		return true, xptest.Object("velero.io/v1", "BackupStorageLocation", "velero", "default", xptest.Field(strconv.Itoa(looks), "status", "lastSyncedTime")), nil
	})
}

// aborts returns the namespaces of the records of aborts.
func (s *server) aborts(t *testing.T) (namespaces [][]string) {
	t.Helper()
	list, err := s.Tracker().List(backups, adoption.KindBackup, "velero")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range list.(*unstructured.UnstructuredList).Items { //nolint:forcetypeassert // The tracker returns only such lists.
		if r, ok := adoption.ReceiptIn(&u); ok && r.Aborted {
			namespaces = append(namespaces, r.Namespaces)
		}
	}

	return namespaces
}

// An abort of what is backed up is recorded in the bucket, and looks for receipts after that.
func TestAbortIsRecorded(t *testing.T) {
	a := newLiveTree("1").held()
	receipt := receipt(own, other, heldAt.Add(time.Hour))
	released := results{Results: treeResults(report.Released, report.Released, report.Released)}
	cases := map[string]struct {
		reason  string
		of      abortArgs
		more    []*unstructured.Unstructured
		brought *unstructured.Unstructured
		silent  bool
		want    results
		// records is the number of handovers that stay recorded.
		records int
		aborts  [][]string
		said    string
	}{
		"Alone": {reason: "A later restore of the backup is refused.", want: released, aborts: [][]string{{"", xptest.Namespace}}, said: "waiting for up to two minutes"},
		"AdoptedMeanwhile": {
			reason: "The other cluster began before the record was there.", brought: receipt, said: "[AdoptedElsewhere]", records: 1, aborts: [][]string{{"", xptest.Namespace}},
			want: results{Results: treeResults(report.StillHeld, report.StillHeld, report.StillHeld), Code: ExitProblems},
		},
		"Silent": {
			reason: "Without Velero nobody knows whether another cluster adopts it.", silent: true, records: 1, aborts: [][]string{{"", xptest.Namespace}},
			want: results{Code: ExitFailed}, said: "everything stays held; if none does, add --force: cannot wait until Velero has synchronized",
		},
		"PartlyAdopted": {
			reason: "What is in another namespace goes on, and must not be restored elsewhere any more.", records: 1, aborts: [][]string{{"team-b"}},
			more: []*unstructured.Unstructured{
				xptest.With(receipt, xptest.Annotated(adoption.AnnotationReceipt,
					`{"source":"own","cluster":"other","backup":"move","started":"2026-01-02T04:04:05Z","namespaces":["team-a"]}`)),
				handedOver(xptest.MR("b9", xptest.Labelled(xp.LabelClaimNamespace, "team-b"), xptest.Annotated(xp.AnnotationExternalName, "e9"), xptest.Reconciled())),
			},
			want: results{Results: map[string]report.Result{
				"OrderClaim team-a/o1": report.StillHeld, "XOrder x1": report.StillHeld, "Bucket b1": report.StillHeld, "Bucket b9": report.Released,
			}, Code: ExitProblems},
		},
		"Forced": {reason: "A user need not wait who knows.", of: abortArgs{force: true}, silent: true, want: released, aborts: [][]string{{"", xptest.Namespace}}},
		"DryRun": {
			reason: "A dry run writes nothing.", of: abortArgs{dryRun: true}, records: 1,
			want: results{Results: treeResults(report.WouldRelease, report.WouldRelease, report.WouldRelease)},
		},
		"Named": {
			reason: "Another cluster must not adopt the one, and the handover of the others needs another backup.", of: abortArgs{names: []string{"b1"}}, records: 1,
			want: results{Results: map[string]report.Result{"Bucket b1": report.Released}}, aborts: [][]string{{""}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := handoverServer(nil, slices.Concat(a.all(), tc.more, []*unstructured.Unstructured{newLeftTree("1").revision, record(), backedUp()})...)
				s.PrependWatchReactor("*", func(a clienttesting.Action) (bool, apiwatch.Interface, error) { // The fake's watches would outlast the bubble.
					return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", nil)
				})
				if tc.silent {
					if err := s.Tracker().Create(locations, xptest.Object("velero.io/v1", "BackupStorageLocation", "velero", "default"), "velero"); err != nil {
						t.Fatal(err)
					}
				} else {
					s.synchronize(tc.brought)
				}
				got := s.abort(t, tc.of)
				if diff := cmp.Diff(tc.want, results{Results: got.Results, Code: got.Code}, cmpopts.IgnoreUnexported(results{}), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s\n%s", tc.reason, diff, got.err)
				}
				if n := len(s.records(t)); n != tc.records {
					t.Errorf("%s\n%d records are left, not %d", tc.reason, n, tc.records)
				}
				if diff := cmp.Diff(tc.aborts, s.aborts(t)); diff != "" {
					t.Errorf("%s\nthe recorded aborts: -want, +got:\n%s", tc.reason, diff)
				}
				if said := got.out + got.err; !strings.Contains(said, tc.said) {
					t.Errorf("%s\nthe output lacks %q:\n%s", tc.reason, tc.said, said)
				}
			})
		})
	}
}
