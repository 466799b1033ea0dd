package live

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// handoverServer returns a server that also has Namespaces, and Velero's Backups and locations.
func handoverServer(objects ...*unstructured.Unstructured) *server {
	s := newServer(objects...)
	s.kinds["v1"] = append(s.kinds["v1"], metav1.APIResource{Name: "namespaces", Kind: "Namespace"})
	s.kinds[adoption.KindBackup.GroupVersion().String()] = []metav1.APIResource{
		{Name: "backups", Kind: "Backup", Namespaced: true}, {Name: "backupstoragelocations", Kind: "BackupStorageLocation", Namespaced: true},
	}

	return s
}

func kubeSystem(uid string) *unstructured.Unstructured {
	return xptest.Object("v1", "Namespace", "", metav1.NamespaceSystem, xptest.UID(types.UID(uid)))
}

func recorded(entries map[string]any) *unstructured.Unstructured {
	return xptest.Object("v1", "ConfigMap", "velero", HandoverConfigMap, xptest.Field(entries, "data"))
}

func TestHandovers(t *testing.T) {
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		failure error
		want    adoption.Handovers
		err     string
	}{
		"None": {reason: "Most clusters have no handover.", want: adoption.Handovers{}},
		"Some": {
			reason:  "The record has an entry for each namespace, and one for the whole cluster.",
			objects: []*unstructured.Unstructured{recorded(map[string]any{"team-a": `{"since":"1","quiet":"2"}`, "_cluster": `{"since":"3"}`})},
			want:    adoption.Handovers{"team-a": {Since: "1", Quiet: "2"}, "": {Since: "3"}},
		},
		"Changed": {
			reason:  "Another writer has made it unreadable, which must not pass for no handover.",
			objects: []*unstructured.Unstructured{recorded(map[string]any{"team-a": "now"})}, err: "cannot read the entry team-a of the ConfigMap velero/" + HandoverConfigMap,
		},
		"Forbidden": {
			reason: "A missing right must not pass for no handover.", failure: apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, HandoverConfigMap, nil),
			err: "cannot read the record of handovers",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := handoverServer(tc.objects...)
			if tc.failure != nil {
				s.failOn("get", "configmaps", 1, tc.failure)
			}
			got, err := s.cluster().Handovers(t.Context(), "velero")
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\nerror %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestRecordHandover(t *testing.T) {
	before := map[string]any{"team-b": `{"since":"0"}`}
	h := &adoption.Handover{Since: "1"}
	away := apierrors.NewServiceUnavailable("the API server restarts")
	cases := map[string]struct {
		reason    string
		before    map[string]any
		namespace string
		record    *adoption.Handover
		failure   error
		want      adoption.Handovers
		err       bool
	}{
		"First":       {reason: "The ConfigMap is made for the first handover.", namespace: "team-a", record: h, want: adoption.Handovers{"team-a": *h}},
		"Second":      {reason: "Other handovers keep their records.", before: before, namespace: "team-a", record: h, want: adoption.Handovers{"team-a": *h, "team-b": {Since: "0"}}},
		"Whole":       {reason: "The whole cluster has a record of its own.", before: before, record: h, want: adoption.Handovers{"": *h, "team-b": {Since: "0"}}},
		"Changed":     {reason: "A record can be replaced.", before: before, namespace: "team-b", record: h, want: adoption.Handovers{"team-b": *h}},
		"Removed":     {reason: "The handover is over.", before: before, namespace: "team-b", want: adoption.Handovers{}},
		"NoneRemoved": {reason: "A removal can be repeated.", namespace: "team-b", want: adoption.Handovers{}},
		"Restarted":   {reason: "An API server that restarts must not end a handover.", namespace: "team-a", record: h, failure: away, want: adoption.Handovers{"team-a": *h}},
		"Forbidden": {
			reason: "A handover without its record would be backed up as if it were none.", namespace: "team-a", record: h, err: true, want: adoption.Handovers{},
			failure: apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, HandoverConfigMap, nil),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := handoverServer()
			if tc.before != nil {
				s = handoverServer(recorded(tc.before))
			}
			if tc.failure != nil {
				s.failOn("patch", "configmaps", 1, tc.failure)
			}
			if err := s.cluster().RecordHandover(t.Context(), "velero", tc.namespace, tc.record); (err != nil) != tc.err {
				t.Errorf("%s\nerror %v", tc.reason, err)
			}
			got, err := s.cluster().Handovers(t.Context(), "velero")
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%s\nerror %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

// The record stays out of backups: in another cluster it would be wrong.
func TestRecordHandoverIsNotBackedUp(t *testing.T) {
	s := handoverServer()
	if err := s.cluster().RecordHandover(t.Context(), "velero", "team-a", &adoption.Handover{Since: "1"}); err != nil {
		t.Fatal(err)
	}
	if u := s.get(t, configmaps, "velero", HandoverConfigMap); xp.Label(u, "velero.io/exclude-from-backup") != "true" {
		t.Errorf("its labels are %v", u.GetLabels())
	}
}

func TestUID(t *testing.T) {
	s := handoverServer(kubeSystem("here"))
	if uid, err := s.cluster().UID(t.Context()); uid != "here" || err != nil {
		t.Errorf("the UID is %q, error %v", uid, err)
	}
	s = handoverServer(kubeSystem("here"))
	s.failOn("get", "namespaces", 1, apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, metav1.NamespaceSystem, nil))
	if uid, err := s.cluster().UID(t.Context()); uid != "" || !apierrors.IsForbidden(err) {
		t.Errorf("without the right the UID is %q, error %v", uid, err)
	}
}

// HandOver holds what it can, and leaves to the next look what another writer has changed.
func TestHandOver(t *testing.T) {
	free, gone, busy := xptest.MR("free", xptest.Reconciled()), xptest.MR("gone", xptest.Reconciled()), xptest.MR("busy", xptest.Deleting())
	changed := xptest.With(xptest.MR("changed", xptest.Reconciled()), xptest.Version("0"))
	s := newServer(free, busy, changed)
	key := adoption.Key(strings.Repeat("k", adoption.KeySize))
	var steps []string
	a := NewAdopter(s.cluster(), discardLog()).OnStep(func(c adoption.Change) { steps = append(steps, xp.String(c.Target)+": "+c.Step) })
	seen := []*unstructured.Unstructured{s.get(t, buckets, "", "free"), gone, s.get(t, buckets, "", "busy"), changed}
	if err := a.HandOver(t.Context(), key, seen); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Bucket free: " + adoption.StepHandover}, steps); diff != "" {
		t.Errorf("steps: -want, +got:\n%s", diff)
	}
	for name, want := range map[string]bool{"free": true, "busy": false, "changed": false} {
		if got := xp.IsPaused(s.get(t, buckets, "", name)); got != want {
			t.Errorf("Bucket %s is paused: %t", name, got)
		}
	}
	s.failOn("patch", "buckets", 1, errors.New("no"))
	if err := a.HandOver(t.Context(), key, []*unstructured.Unstructured{s.get(t, buckets, "", "changed")}); err == nil || !strings.Contains(err.Error(), "cannot hold Bucket changed") {
		t.Errorf("a patch that fails must be an error that names the object; got %v", err)
	}
}

func TestRetire(t *testing.T) {
	mr := xptest.MR("b")
	bare := xptest.With(mr, xptest.Without("metadata", "finalizers"))
	touch := func(tb testing.TB, s *apiServer) {
		tb.Helper()
		s.put(tb, xptest.With(mr, xptest.Annotated("a", "b")))
	}
	cases := map[string]struct {
		reason string
		live   *unstructured.Unstructured
		// meanwhile is called after the object was read.
		meanwhile func(tb testing.TB, s *apiServer)
		// conflict is set if the object must stay with its finalizers left.
		conflict bool
		left     int
		want     []string
	}{
		"MR":          {reason: "The finalizer goes first, so the provider does not act.", live: mr, want: []string{"Bucket /b Background"}},
		"NoFinalizer": {reason: "An earlier run was stopped after it had taken the finalizer off.", live: bare, want: []string{"Bucket /b Background"}},
		"XR":          {reason: "What an XR has composed must not be deleted with it.", live: xptest.XR("x"), want: []string{"XOrder /x Orphan"}},
		"Claim":       {reason: "A claim does not own its XR.", live: xptest.Claim("o"), want: []string{"OrderClaim team-a/o Background"}},
		"Changed":     {reason: "Another writer may have unpaused it.", live: mr, meanwhile: touch, conflict: true, left: 1},
		"ChangedBare": {reason: "The same without a finalizer.", live: bare, meanwhile: touch, conflict: true, left: 1},
		"Again": {
			reason: "Another object has the name now.", live: bare, conflict: true, left: 1,
			meanwhile: func(tb testing.TB, s *apiServer) {
				tb.Helper()
				s.remove(bare)
				s.put(tb, xptest.MR("b", xptest.UID("another")))
			},
		},
		"ChangedBetween": {
			reason: "Another writer has changed it after its finalizer was taken off.", live: mr, conflict: true, left: 1,
			meanwhile: func(tb testing.TB, s *apiServer) {
				tb.Helper()
				s.controllers = func(u *unstructured.Unstructured) *unstructured.Unstructured {
					s.controllers = nil

					return xptest.With(u, xptest.Annotated("a", "b"))
				}
			},
		},
		"Gone":     {reason: "It is retired if it is gone.", live: mr, meanwhile: func(tb testing.TB, s *apiServer) { tb.Helper(); s.remove(mr) }},
		"GoneBare": {reason: "The same without a finalizer.", live: bare, meanwhile: func(tb testing.TB, s *apiServer) { tb.Helper(); s.remove(bare) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t)
			s.put(t, tc.live)
			c := s.connect(t)
			seen, err := c.Get(t.Context(), xp.RefTo(tc.live))
			if err != nil {
				t.Fatal(err)
			}
			if tc.meanwhile != nil {
				tc.meanwhile(t, s)
			}
			if err := c.Retire(t.Context(), seen); apierrors.IsConflict(err) != tc.conflict || err != nil && !tc.conflict {
				t.Errorf("%s\nerror %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, s.deletions); diff != "" {
				t.Errorf("%s\ndeleted: -want, +got:\n%s", tc.reason, diff)
			}
			if left := len(s.all(buckets)); left != tc.left {
				t.Errorf("%s\n%d MRs are left, not %d", tc.reason, left, tc.left)
			}
		})
	}
}

func receiptIn(u *unstructured.Unstructured) string {
	return xp.Annotation(u, adoption.AnnotationReceipt)
}

func TestReceipts(t *testing.T) {
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	content := func(source, cluster string) string {
		return `{"source":"` + source + `","cluster":"` + cluster + `","backup":"b","restore":"r","started":"2026-01-02T03:04:05Z"}`
	}
	backup := func(name string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("velero.io/v1", "Backup", "velero", name, o...)
	}
	label := xptest.Labelled(adoption.LabelReceipt, "true")
	s := handoverServer(
		backup("plain"), backup("unlabelled", xptest.Annotated(adoption.AnnotationReceipt, content("here", "there"))),
		backup("mine", label, xptest.Annotated(adoption.AnnotationReceipt, content("here", "there"))),
		backup("own", label, xptest.Annotated(adoption.AnnotationReceipt, content("here", "here"))),
		backup("others", label, xptest.Annotated(adoption.AnnotationReceipt, content("third", "there"))),
		backup("broken", label, xptest.Annotated(adoption.AnnotationReceipt, "{")), backup("empty", label),
		xptest.With(backup("elsewhere", label, xptest.Annotated(adoption.AnnotationReceipt, content("here", "far"))), xptest.In("other-velero")),
	)
	got, err := s.cluster().Receipts(t.Context(), "velero", "here")
	want := []adoption.Receipt{{Name: "mine", Source: "here", Cluster: "there", Backup: "b", Restore: "r", Started: started}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("only receipts of other clusters for the backups of this one count: error %v, -want, +got:\n%s", err, diff)
	}
	s.refuseLists("backups", false, apierrors.NewForbidden(schema.GroupResource{Resource: "backups"}, "", nil))
	if _, err := s.cluster().Receipts(t.Context(), "velero", "here"); !apierrors.IsForbidden(err) {
		t.Errorf("a missing right must not pass for no receipt; got %v", err)
	}
	s = handoverServer()
	delete(s.kinds, adoption.KindBackup.GroupVersion().String())
	if got, err := s.cluster().Receipts(t.Context(), "velero", "here"); len(got) > 0 || err != nil {
		t.Errorf("a cluster without Velero has no receipts; got %v, %v", got, err)
	}
}

func TestLeaveReceipt(t *testing.T) {
	of := func(kind, name string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("velero.io/v1", kind, "velero", name, o...)
	}
	backup := of("Backup", "move", xptest.Field("default", "spec", "storageLocation"), xptest.Field("2026-01-02T03:04:05Z", "status", "startTimestamp"))
	location := of("BackupStorageLocation", "default")
	restore := of("Restore", "moved", xptest.UID("r1"), xptest.Field("move", "spec", "backupName"))
	cases := map[string]struct {
		reason   string
		objects  []*unstructured.Unstructured
		failure  error
		want     bool
		receipts []adoption.Receipt
		err      string
	}{
		"Left": {
			reason: "The source cluster finds it with its next synchronization.", objects: []*unstructured.Unstructured{backup, location, kubeSystem("there")}, want: true,
			receipts: []adoption.Receipt{{Name: "receipt-r1", Source: "here", Cluster: "there", Backup: "move", Restore: "moved", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}},
		},
		"ReadOnly": {
			reason:  "Velero refuses a Backup in a read-only location.",
			objects: []*unstructured.Unstructured{backup, xptest.With(location, xptest.Field("ReadOnly", "spec", "accessMode")), kubeSystem("there")},
		},
		"NoBackup":   {reason: "The location is that of the Backup.", objects: []*unstructured.Unstructured{location, kubeSystem("there")}, err: "cannot leave a receipt"},
		"NoLocation": {reason: "Nobody can write to a location that is not there.", objects: []*unstructured.Unstructured{backup, kubeSystem("there")}, err: "cannot leave a receipt"},
		"NoCluster":  {reason: "A receipt has to name its cluster.", objects: []*unstructured.Unstructured{backup, location}, err: "cannot find out which cluster this is"},
		"Forbidden": {
			reason: "The error must name the backup.", objects: []*unstructured.Unstructured{backup, location, kubeSystem("there")},
			failure: apierrors.NewForbidden(schema.GroupResource{Resource: "backups"}, "", nil), err: "cannot leave a receipt for the cluster of the backup move",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := handoverServer(tc.objects...)
			if tc.failure != nil {
				s.failOn("create", "backups", 1, tc.failure)
			}
			got, err := s.cluster().LeaveReceipt(t.Context(), "velero", "here", false, restore)
			if got != tc.want || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\nleft: %t, error %v", tc.reason, got, err)
			}
			receipts, err := s.cluster().Receipts(t.Context(), "velero", "here")
			if diff := cmp.Diff(tc.receipts, receipts); diff != "" || err != nil {
				t.Errorf("%s\nerror %v, -want, +got:\n%s", tc.reason, err, diff)
			}
			if len(receipts) == 0 {
				return
			}
			if again, err := s.cluster().LeaveReceipt(t.Context(), "velero", "here", false, restore); !again || err != nil {
				t.Errorf("A restore that goes on after a crash finds its receipt: left %t, error %v", again, err)
			}
			u := s.get(t, backups, "velero", "receipt-r1")
			if location, _, _ := unstructured.NestedString(u.Object, "spec", "storageLocation"); location != "default" || receiptIn(u) == "" {
				t.Errorf("The receipt must go to the bucket of the backup; got %v", u.Object)
			}
		})
	}
}
