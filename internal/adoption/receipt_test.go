package adoption

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// storedBackup returns a Backup that began in an hour, and that a sync brought if it is foreign.
func storedBackup(name, schedule string, hour int, foreign bool, namespaces ...any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"storageLocation": "default", "includedNamespaces": namespaces},
		"status": map[string]any{"startTimestamp": time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC).Format(time.RFC3339)},
	}}
	u.SetGroupVersionKind(KindBackup)
	u.SetName(name)
	u.SetGeneration(1)
	if !foreign {
		u.SetGeneration(4)
	}
	if schedule != "" {
		u.SetLabels(map[string]string{labelSchedule: schedule})
	}

	return u
}

func receiptBackup(t *testing.T, r Receipt) *unstructured.Unstructured {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	u := storedBackup("receipt", "", 9, true)
	u.SetLabels(map[string]string{LabelReceipt: "true"})
	u.SetAnnotations(map[string]string{AnnotationReceipt: string(b)})

	return u
}

func TestCollisions(t *testing.T) {
	const own = "this"
	nightly := storedBackup("nightly-1", "nightly", 1, true)
	byHand := storedBackup("by-hand", "", 1, true, "team-a")
	other := func(r Receipt) Receipt {
		r.Cluster = "other"

		return r
	}
	cases := map[string]struct {
		reason  string
		of      *unstructured.Unstructured
		backups []*unstructured.Unstructured
		want    []reason.Code
	}{
		"Alone":    {reason: "Older backups are the usual case after a disaster.", of: nightly, backups: []*unstructured.Unstructured{storedBackup("nightly-0", "nightly", 0, true)}},
		"Newer":    {reason: "The cluster of the backup is running.", of: nightly, backups: []*unstructured.Unstructured{storedBackup("nightly-2", "nightly", 12, true)}, want: []reason.Code{reason.SourceAlive}},
		"Own":      {reason: "This cluster takes backups too.", of: nightly, backups: []*unstructured.Unstructured{storedBackup("nightly-2", "nightly", 12, false)}},
		"Schedule": {reason: "Another cluster has a bucket in common.", of: nightly, backups: []*unstructured.Unstructured{storedBackup("weekly-2", "weekly", 12, true)}},
		"Common":   {reason: "A manual backup has no schedule, so the namespaces count.", of: byHand, backups: []*unstructured.Unstructured{storedBackup("nightly-2", "nightly", 12, true)}, want: []reason.Code{reason.SourceAlive}},
		"Disjoint": {reason: "It has other namespaces.", of: byHand, backups: []*unstructured.Unstructured{storedBackup("nightly-2", "nightly", 12, true, "team-b")}},
		"Location": {reason: "It is in another bucket.", of: nightly, backups: func() []*unstructured.Unstructured {
			u := storedBackup("nightly-2", "nightly", 12, true)
			_ = unstructured.SetNestedField(u.Object, "other", "spec", "storageLocation")

			return []*unstructured.Unstructured{u}
		}()},
		"Receipt":    {reason: "Another cluster restores the same backup.", of: byHand, backups: []*unstructured.Unstructured{receiptBackup(t, other(Receipt{Backup: "by-hand"}))}, want: []reason.Code{reason.AdoptedElsewhere}},
		"ReceiptOld": {reason: "Another cluster has adopted an older backup of the schedule.", of: nightly, backups: []*unstructured.Unstructured{receiptBackup(t, other(Receipt{Backup: "nightly-0", Schedule: "nightly"}))}, want: []reason.Code{reason.AdoptedElsewhere}},
		"ReceiptOf":  {reason: "It is about another backup.", of: byHand, backups: []*unstructured.Unstructured{receiptBackup(t, other(Receipt{Backup: "another"}))}},
		"ReceiptOwn": {reason: "It is this cluster's.", of: byHand, backups: []*unstructured.Unstructured{receiptBackup(t, Receipt{Backup: "by-hand", Cluster: own})}},
		"Handover": {
			reason: "The source is held and can go on with its backups.", of: byHand,
			backups: []*unstructured.Unstructured{receiptBackup(t, Receipt{Backup: "by-hand", Cluster: own, Handover: true}), storedBackup("nightly-2", "nightly", 12, true)},
		},
		"Aborted": {
			reason: "The source goes on with what this cluster adopts.", of: byHand, want: []reason.Code{reason.HandoverAborted},
			backups: []*unstructured.Unstructured{
				receiptBackup(t, Receipt{Backup: "by-hand", Source: "source", Cluster: own, Handover: true}),
				receiptBackup(t, Receipt{Source: "source", Cluster: "source", Aborted: true}),
			},
		},
		"AbortedGlob": {
			reason: "The backup has the namespace, by a glob.", of: storedBackup("teams", "", 1, true, "team-*"), want: []reason.Code{reason.HandoverAborted},
			backups: []*unstructured.Unstructured{
				receiptBackup(t, Receipt{Backup: "teams", Source: "source", Cluster: own, Handover: true}),
				receiptBackup(t, Receipt{Source: "source", Cluster: "source", Namespaces: []string{"team-a"}, Aborted: true}),
			},
		},
		"AbortedElsewhere": {
			reason: "The handover of another namespace was aborted.", of: byHand,
			backups: []*unstructured.Unstructured{
				receiptBackup(t, Receipt{Backup: "by-hand", Source: "source", Cluster: own, Handover: true}),
				receiptBackup(t, Receipt{Source: "source", Cluster: "source", Namespaces: []string{"", "team-b"}, Aborted: true}),
			},
		},
		"AbortedByAnother": {
			reason: "Many clusters share the bucket.", of: byHand,
			backups: []*unstructured.Unstructured{
				receiptBackup(t, Receipt{Backup: "by-hand", Source: "source", Cluster: own, Handover: true}),
				receiptBackup(t, Receipt{Source: "third", Cluster: "third", Aborted: true}),
			},
		},
		"Unreadable": {reason: "A receipt that can't be read is none.", of: byHand, backups: func() []*unstructured.Unstructured {
			u := receiptBackup(t, Receipt{})
			u.SetAnnotations(map[string]string{AnnotationReceipt: "{"})

			return []*unstructured.Unstructured{u}
		}()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			restore := &unstructured.Unstructured{Object: map[string]any{
				"spec": map[string]any{"backupName": tc.of.GetName()}, "status": map[string]any{"startTimestamp": "2026-01-01T10:00:00Z"},
			}}
			var got []reason.Code
			for _, m := range Collisions(own, restore, append(tc.backups, tc.of)) {
				got = append(got, m.Code)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if got := Collisions(own, restore, tc.backups); got != nil {
				t.Errorf("Without the backup nothing is known; got %v", got)
			}
		})
	}
}

func TestReceiptCovers(t *testing.T) {
	backup := storedBackup("nightly-1", "nightly", 1, true)
	restore := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"includedNamespaces": []any{"team-a"}}}}
	before, after := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC)
	some := ReceiptOf(backup, restore, "other", "this", false)
	all := ReceiptOf(backup, &unstructured.Unstructured{Object: map[string]any{}}, "other", "this", false)
	teams := ReceiptOf(storedBackup("teams", "", 1, true, "team-*"), &unstructured.Unstructured{Object: map[string]any{}}, "other", "this", false)
	cases := map[string]struct {
		reason    string
		receipt   Receipt
		namespace string
		created   time.Time
		want      bool
	}{
		"Restored":  {reason: "The Restore is of this namespace.", receipt: some, namespace: "team-a", created: before, want: true},
		"Other":     {reason: "The Restore is of another namespace.", receipt: some, namespace: "team-b", created: before},
		"Glob":      {reason: "Velero expands the globs of a Backup, and its spec keeps them.", receipt: teams, namespace: "team-b", created: before, want: true},
		"NoGlob":    {reason: "The glob does not match.", receipt: teams, namespace: "apps", created: before},
		"Cluster":   {reason: "The Restore is of one namespace.", receipt: some, created: before},
		"All":       {reason: "The Restore is of all namespaces.", receipt: all, namespace: "team-b", created: before, want: true},
		"Later":     {reason: "The object was not in the backup, or came back since.", receipt: all, namespace: "team-b", created: after},
		"InCluster": {reason: "Cluster-scoped objects are restored with all.", receipt: all, created: before, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.receipt.Covers(tc.namespace, tc.created); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}

func TestReceiptCoversObject(t *testing.T) {
	some := Receipt{Started: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), Namespaces: []string{"team-a"}}
	restore := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"includedNamespaces": []any{"team-a"}, "includeClusterResources": true}}}
	scoped := ReceiptOf(storedBackup("all", "", 9, true), restore, "other", "this", true)
	claimed := xptest.Labelled(xp.LabelClaimNamespace, "team-b")
	cases := map[string]struct {
		reason string
		scoped bool
		object *unstructured.Unstructured
		want   bool
	}{
		"Scoped":    {reason: "The Restore brings the XRs of all claims.", scoped: true, object: xptest.XR("x", claimed), want: true},
		"ScopedOut": {reason: "The Restore does not bring the claim.", scoped: true, object: xptest.Claim("o", xptest.In("team-b"))},
		"Restored":  {reason: "The Restore is of its namespace.", object: xptest.Claim("o"), want: true},
		"Other":     {reason: "The Restore is of another namespace.", object: xptest.Claim("o", xptest.In("team-b"))},
		"Claimed":   {reason: "A cluster-scoped object belongs to its claim.", object: xptest.XR("x", claimed)},
		"Unclaimed": {reason: "A cluster-scoped object can be in any backup.", object: xptest.XR("x"), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := some
			if tc.scoped {
				r = scoped
			}
			if got := r.CoversObject(tc.object); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}

func TestCanHave(t *testing.T) {
	withXRs, named := storedBackup("cluster", "", 1, false, "team-a"), storedBackup("named", "", 1, false, "team-a")
	_ = unstructured.SetNestedField(withXRs.Object, true, "spec", "includeClusterResources")
	_ = unstructured.SetNestedStringSlice(named.Object, []string{"buckets"}, "spec", "includedClusterScopedResources")
	some, all := storedBackup("some", "", 1, false, "team-a", "apps-?"), storedBackup("all", "", 1, false, "*")
	cases := map[string]struct {
		reason     string
		backup     *unstructured.Unstructured
		namespaces []string
		want       bool
	}{
		"Included": {reason: "Velero backs it up.", backup: some, namespaces: []string{"other", "team-a"}, want: true},
		"Glob":     {reason: "A glob includes it.", backup: some, namespaces: []string{"apps-1"}, want: true},
		"Other":    {reason: "Velero takes nothing of other namespaces, not even for an action.", backup: some, namespaces: []string{"other"}},
		"All":      {reason: "The Backup is of all.", backup: all, namespaces: []string{"other"}, want: true},
		"Scoped":   {reason: "It has the XRs and MRs of all claims.", backup: withXRs, namespaces: []string{"other"}, want: true},
		"Named":    {reason: "It has some of the XRs and MRs of all claims.", backup: named, namespaces: []string{"other"}, want: true},
		"Unknown":  {reason: "Everything was handed over.", backup: some, want: true},
		"Cluster":  {reason: "An object of a namespace can bring cluster-scoped ones.", backup: some, namespaces: []string{"", "other"}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := CanHave(tc.backup, tc.namespaces); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}

func TestReceiptIsAbortOf(t *testing.T) {
	backup := storedBackup("move", "", 9, true)
	abort := func(hour int, change func(*Receipt)) *unstructured.Unstructured {
		r := Receipt{Source: "source", Cluster: "source", Aborted: true}
		change(&r)
		u := receiptBackup(t, r)
		u.Object["status"] = storedBackup("", "", hour, true).Object["status"]

		return u
	}
	same := func(*Receipt) {}
	cases := map[string]struct {
		reason string
		record *unstructured.Unstructured
		want   bool
	}{
		"Later":   {reason: "What the backup has is managed there again.", record: abort(10, same), want: true},
		"Same":    {reason: "Times have seconds, so it is the safe answer.", record: abort(9, same), want: true},
		"Earlier": {reason: "The source was held again, and backed up.", record: abort(8, same)},
		"Another": {reason: "Many clusters share the bucket.", record: abort(10, func(r *Receipt) { r.Source = "third" })},
		"Receipt": {reason: "A receipt is none.", record: abort(10, func(r *Receipt) { r.Aborted = false })},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, ok := ReceiptIn(tc.record)
			if got := r.IsAbortOf("source", backup); !ok || got != tc.want {
				t.Errorf("%s: got %t, %t", tc.reason, got, ok)
			}
		})
	}
}
