package live

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var standbyKey = adoption.Key(strings.Repeat("k", adoption.KeySize))

// standby returns an object as a standby restore leaves it.
func standby(t *testing.T, u *unstructured.Unstructured, restore, content string) *unstructured.Unstructured {
	t.Helper()
	return heldBy(t, u, adoption.Hold{Restore: restore, Since: "2026-01-02T03:04:05Z", Quarantine: true, Schedule: "nightly", Content: content})
}

// heldBy returns an object that a Restore holds, as it is in the cluster.
func heldBy(t *testing.T, u *unstructured.Unstructured, h adoption.Hold) *unstructured.Unstructured {
	t.Helper()
	u = xptest.With(u, xptest.Labelled(xp.LabelRestore, strings.TrimPrefix(h.Restore, "velero/")))
	if _, err := adoption.Put(u, h); err != nil {
		t.Fatal(err)
	}
	if err := standbyKey.Sign(u, u.GetNamespace()); err != nil {
		t.Fatal(err)
	}

	return u
}

func regionOf(u *unstructured.Unstructured) string {
	region, _, _ := unstructured.NestedString(u.Object, "spec", "forProvider", "region")

	return region
}

func TestRefresh(t *testing.T) {
	in := func(region string) *unstructured.Unstructured {
		return xptest.MR("b", xptest.Field(region, "spec", "forProvider", "region"))
	}
	byUser := xptest.Field([]any{
		map[string]any{"manager": "kubectl", "operation": "Update", "apiVersion": xptest.ManagedVersion, "time": "2026-01-02T04:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{}},
	}, "metadata", "managedFields")
	old := standby(t, in("eu"), "velero/monday", "1")
	type want struct {
		Done    bool
		Region  string
		Restore string
		Content string
		Verbs   string
	}
	cases := map[string]struct {
		reason string
		live   *unstructured.Unstructured
		item   *unstructured.Unstructured
		// meanwhile changes the live object after its kind was listed.
		meanwhile []xptest.Option
		want      want
	}{
		"Same":      {reason: "Only the mark changes.", live: old, item: standby(t, in("eu"), "velero/tuesday", "1"), want: want{Done: true, Region: "eu", Restore: "velero/tuesday", Content: "1", Verbs: "patch"}},
		"New":       {reason: "The content of the backup replaces the live one.", live: old, item: standby(t, in("us"), "velero/tuesday", "2"), want: want{Done: true, Region: "us", Restore: "velero/tuesday", Content: "2", Verbs: "update patch"}},
		"ByUser":    {reason: "The same backup also replaces what a user has changed.", live: xptest.With(old, byUser), item: standby(t, in("eu"), "velero/tuesday", "1"), want: want{Done: true, Region: "eu", Restore: "velero/tuesday", Content: "1", Verbs: "update patch"}},
		"Stopped":   {reason: "A refresh that was stopped has no content yet.", live: standby(t, in("eu"), "velero/tuesday", ""), item: standby(t, in("us"), "velero/tuesday", "2"), want: want{Done: true, Region: "us", Restore: "velero/tuesday", Content: "2", Verbs: "update patch"}},
		"Reported":  {reason: "A controller has reported the pause meanwhile.", live: old, item: standby(t, in("eu"), "velero/tuesday", "1"), meanwhile: []xptest.Option{xptest.SeenPaused()}, want: want{Done: true, Region: "eu", Restore: "velero/tuesday", Content: "1", Verbs: "patch get patch"}},
		"Released":  {reason: "A user has released it meanwhile, so it must not be overwritten.", live: old, item: standby(t, in("us"), "velero/tuesday", "1"), meanwhile: []xptest.Option{xptest.Annotated(xp.AnnotationPaused, "false")}, want: want{Region: "eu", Restore: "velero/monday", Content: "1", Verbs: "patch get"}},
		"Recreated": {reason: "Another object has the name now.", live: old, item: standby(t, in("us"), "velero/tuesday", "1"), meanwhile: []xptest.Option{xptest.UID("other")}, want: want{Region: "eu", Restore: "velero/monday", Content: "1", Verbs: "patch get"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(tc.live)
			c := s.cluster()
			found, err := c.Standby(t.Context(), standbyKey, xp.RefTo(tc.item))
			if err != nil || found == nil {
				t.Fatalf("it is not found: %v", err)
			}
			if tc.meanwhile != nil {
				s.put(buckets, xptest.With(s.get(t, buckets, "", "b"), tc.meanwhile...))
			}
			s.ClearActions()
			h, err := adoption.HoldOf(tc.item)
			if err != nil {
				t.Fatal(err)
			}
			done, err := c.Refresh(t.Context(), standbyKey, *found, adoption.Refresh{
				Object: tc.item, Labels: map[string]string{xp.LabelRestore: "tuesday"}, Content: h.Content,
			})
			if err != nil {
				t.Fatal(err)
			}
			var verbs []string
			for _, a := range s.Actions() {
				verbs = append(verbs, a.GetVerb())
			}
			u := s.get(t, buckets, "", "b")
			after, err := adoption.HoldOf(u)
			if err != nil || after == nil {
				t.Fatalf("the hold is lost: %v", err)
			}
			got := want{Done: done, Region: regionOf(u), Restore: after.Restore, Content: after.Content, Verbs: strings.Join(verbs, " ")}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if done && (u.GetUID() != tc.live.GetUID() || xp.Label(u, xp.LabelRestore) != "tuesday") {
				t.Errorf("%s: it has the UID %s and the labels %v", tc.reason, u.GetUID(), u.GetLabels())
			}
		})
	}
	if found, err := newServer(xptest.MR("b")).cluster().Standby(t.Context(), standbyKey, xp.RefTo(xptest.MR("b"))); found != nil || err != nil {
		t.Errorf("what is not in quarantine is none; got %+v, %v", found, err)
	}
}

func TestRemoveStandbys(t *testing.T) {
	x := xptest.XR("x")
	kept, gone := standby(t, xptest.MR("kept"), "velero/monday", "1"), standby(t, xptest.MR("gone"), "velero/monday", "1")
	root := standby(t, x, "velero/monday", "1")
	refreshed := standby(t, xptest.MR("refreshed"), "velero/tuesday", "1")
	changed := xptest.With(standby(t, xptest.MR("changed"), "velero/monday", "1"), xptest.Field([]any{
		map[string]any{"manager": "kubectl", "operation": "Update", "apiVersion": xptest.ManagedVersion, "time": "2026-01-02T04:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{}},
	}, "metadata", "managedFields"))
	restore := xptest.Object("velero.io/v1", "Restore", "velero", "tuesday", xptest.Field("nightly-2", "spec", "backupName"))
	backup := func(phase, schedule string) *unstructured.Unstructured {
		return xptest.Object("velero.io/v1", "Backup", "velero", "nightly-2", xptest.Labelled("velero.io/schedule-name", schedule), xptest.Field(phase, "status", "phase"))
	}
	consented := func(schedule string) *unstructured.Unstructured {
		return heldBy(t, xptest.XR("y"), adoption.Hold{Restore: "velero/monday", Schedule: schedule})
	}
	list := `{"cloud.example.org/v1beta9/Bucket":["kept"],"v1/Secret":["team-a/s"],"broken":["a"]}`
	cases := map[string]struct {
		reason  string
		backup  *unstructured.Unstructured
		list    string
		err     error
		removed []string
		left    []string
		fails   bool
		absent  []string
		// promoted is in the cluster, too.
		promoted *unstructured.Unstructured
	}{
		"Removed": {
			reason: "The backup has one of them, in another version.", backup: backup("Completed", "nightly"), list: list, removed: []string{"Bucket gone", "XOrder x"},
			left: []string{"kubectl has changed it since"}, absent: []string{"gone"},
		},
		"Partial": {reason: "The backup can lack what exists.", backup: backup("PartiallyFailed", "nightly"), list: list, left: []string{"nothing is removed"}},
		"Promoted": {
			reason: "A tree that is being promoted can need what an older backup has.", backup: backup("Completed", "nightly"), list: list,
			promoted: consented("nightly"), left: []string{"XOrder y"},
		},
		"OtherPromotion": {
			reason: "What is promoted is of another schedule.", backup: backup("Completed", "nightly"), list: list, promoted: consented("weekly"),
			removed: []string{"Bucket gone", "XOrder x"}, left: []string{"kubectl has changed it since"}, absent: []string{"gone"},
		},
		"Another":   {reason: "Another schedule brought them.", backup: backup("Completed", "weekly"), list: list},
		"Manual":    {reason: "Nothing shows that two manual backups are of the same objects.", backup: backup("Completed", ""), list: list},
		"Unread":    {reason: "Without the list nothing proves that it is gone.", backup: backup("Completed", "nightly"), err: errors.New("boom"), fails: true},
		"Malformed": {reason: "A list that can't be read proves nothing.", backup: backup("Completed", "nightly"), list: "[", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []*unstructured.Unstructured{kept, gone, root, refreshed, changed, tc.backup, restore}
			if tc.promoted != nil {
				objects = append(objects, tc.promoted)
			}
			s := handoverServer(objects...)
			s.kinds["velero.io/v1"] = append(s.kinds["velero.io/v1"], metav1.APIResource{Name: "restores", Kind: "Restore", Namespaced: true})
			for gv, category := range map[string]string{xptest.ManagedVersion: xp.CategoryManaged, xptest.LegacyVersion: xp.CategoryComposite} {
				for n := range s.kinds[gv] {
					s.kinds[gv][n].Categories, s.kinds[gv][n].Verbs = []string{category}, []string{"list"}
				}
			}
			c := s.cluster()
			c.download = func(_ context.Context, _ *velerov1.Backup, w io.Writer) error {
				_, err := io.WriteString(w, tc.list)

				return errors.Join(err, tc.err)
			}
			removed, left, err := c.RemoveStandbys(t.Context(), standbyKey, "velero", "tuesday")
			if (err != nil) != tc.fails {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			var names []string
			for _, r := range removed {
				names = append(names, r.String())
			}
			if diff := cmp.Diff(tc.removed, names); diff != "" {
				t.Errorf("%s\nremoved: -want, +got:\n%s", tc.reason, diff)
			}
			if len(left) != len(tc.left) || len(left) > 0 && !strings.Contains(left[0].String(), tc.left[0]) {
				t.Errorf("%s\nleft: %v, not %v", tc.reason, left, tc.left)
			}
			for _, name := range []string{"kept", "gone", "refreshed", "changed"} {
				_, err := s.Tracker().Get(buckets, "", name)
				if want := len(tc.absent) > 0 && tc.absent[0] == name; (err != nil) != want {
					t.Errorf("%s: Bucket %s is gone: %t", tc.reason, name, err != nil)
				}
			}
		})
	}
}
