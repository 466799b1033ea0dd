package restoreitem

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestAdoptWarnsOfMissingInputSecrets(t *testing.T) {
	mr := xptest.MR("db", xptest.JSON(`{"spec":{"forProvider":{"passwordSecretRef":{"namespace":"infra","name":"password","key":"p"}}}}`))
	password := func(namespace string) *unstructured.Unstructured {
		return xptest.Object("v1", "Secret", namespace, "password", xptest.Field("Opaque", "type"))
	}
	noted := func(exists, stored bool) *unstructured.Unstructured {
		u := mr.DeepCopy()
		xp.SetInputs(u, []xp.Input{{Ref: xp.RefTo(password("infra")), Exists: exists, Stored: stored}})

		return u
	}
	local := xptest.NamespacedMR("db", xptest.JSON(`{"spec":{"forProvider":{"passwordSecretRef":{"name":"password"}}}}`))
	xp.SetInputs(local, []xp.Input{{Ref: xp.RefTo(password("team-a")), Exists: true, Stored: true}})
	heldBefore := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		if _, err := adoption.Put(u, adoption.Hold{Restore: "velero/first", Inputs: []adoption.Input{{Namespace: "infra", Name: "password"}}}); err != nil {
			t.Fatal(err)
		}

		return u
	}
	ofTeamA := velerov1.RestoreSpec{BackupName: "nightly", IncludedNamespaces: []string{"team-a"}}
	const reported = "Secret infra/password, which the provider of Bucket db reads, is not in the cluster"
	cases := map[string]struct {
		reason  string
		live    *cluster
		came    *unstructured.Unstructured
		mapping map[string]string
		spec    velerov1.RestoreSpec
		item    *unstructured.Unstructured
		want    string
		// held is what it is held for.
		held []adoption.Input
	}{
		"Missing":  {reason: "Without the Secret the provider may create another password.", live: live(), item: mr, want: reported},
		"Live":     {reason: "The Secret is live.", live: live(password("infra")), item: mr},
		"Restored": {reason: "The restore has reached the Secret, so the MR waits for it.", live: live(), came: password("infra"), item: mr, held: []adoption.Input{{Namespace: "infra", Name: "password", Stored: true}}},
		"Mapped": {
			reason: "The restored MR names the mapped namespace, so the Secret comes back there.", live: live(), mapping: map[string]string{"infra": "copy"}, came: password("infra"), item: mr,
			held: []adoption.Input{{Namespace: "copy", Name: "password", Stored: true}},
		},
		"MappedAndLive": {reason: "The plugin looks for the Secret in the mapped namespace.", live: live(password("copy")), mapping: map[string]string{"infra": "copy"}, item: noted(true, true)},
		"Existed": {
			reason: "The source cluster had the Secret, so the MR waits.", live: live(), item: noted(true, false), held: []adoption.Input{{Namespace: "infra", Name: "password"}},
		},
		"Stored": {
			reason: "The backup has the Secret, so the MR waits.", live: live(), item: noted(true, true), held: []adoption.Input{{Namespace: "infra", Name: "password", Stored: true}},
		},
		"LeftOut": {
			reason: "This restore leaves the Secret out, but another restore can bring it.", live: live(), item: noted(true, true), spec: ofTeamA,
			held: []adoption.Input{{Namespace: "infra", Name: "password", Stored: true, By: "velero restore create --from-backup nightly --include-namespaces infra --include-resources secrets"}},
		},
		"InNoBackup":      {reason: "The backup lacks the Secret, so no other restore can bring it.", live: live(), item: noted(true, false), spec: ofTeamA, held: []adoption.Input{{Namespace: "infra", Name: "password"}}},
		"NotedAndLive":    {reason: "The Secret is live.", live: live(password("infra")), item: noted(true, true)},
		"NeverThere":      {reason: "An optional Secret that the source lacked must not hold the MR for ever.", live: live(), item: noted(false, false)},
		"NotedAndUnknown": {reason: "A temporary API error holds the MR as if the Secret were missing.", live: failingCluster(errAPI), item: noted(true, false), held: []adoption.Input{{Namespace: "infra", Name: "password"}}},
		"Paused": {
			reason: "No provider reads the Secret of a paused MR.", live: live(), item: xptest.With(noted(true, false), xptest.Annotated(xp.AnnotationPaused, "true")), want: reported,
		},
		"HeldBefore": {
			reason: "The MR was already held for the Secret in the source.", live: live(), item: heldBefore(noted(false, false)), held: []adoption.Input{{Namespace: "infra", Name: "password"}},
		},
		"Local": {
			reason: "A Secret in the MR's own namespace moves with the MR.", live: live(), mapping: map[string]string{"team-a": "copy"}, item: local,
			held: []adoption.Input{{Namespace: "copy", Name: "password", Stored: true}},
		},
		"Forged": {
			reason: "The note counts only for Secrets that the MR itself names.", live: live(password("infra")),
			item: xptest.With(mr, xptest.Field([]any{map[string]any{"namespace": "velero", "name": "other", "exists": true}}, "metadata", xp.FieldInputs)),
		},
		"Elsewhere": {reason: "A Secret of the same name in another namespace does not count.", live: live(password("team-a")), item: mr, want: reported},
		"Unknown":   {reason: "The report names a Secret whose existence is unknown.", live: failingCluster(errAPI), item: mr, want: "Cannot find out whether Secret infra/password exists, which the provider of Bucket db reads"},
		"None":      {reason: "Most MRs read no Secret.", live: failingCluster(errAPI), item: xptest.MR("db")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			requested, restore := &RequestedItems{}, restoreOf(tc.mapping)
			if tc.spec.BackupName != "" {
				restore.Spec = tc.spec
			}
			if tc.came != nil {
				if _, err := NewOrder(Crossplane(), kindsFn(served), log, Shared{Requested: requested}).Execute(inputFor(tc.came, restore)); err != nil {
					t.Fatal(err)
				}
			}
			a := NewAdopt(Crossplane(), tc.live, nil, log, Shared{Requested: requested})
			i := &item{Unstructured: tc.item.DeepCopy(), original: tc.item, restore: restore, log: log}
			a.findInputs(i)
			held := i.holdOf()
			var inputs []adoption.Input
			if held != nil {
				inputs = held.Inputs
			}
			if diff := cmp.Diff(tc.held, inputs); diff != "" {
				t.Errorf("%s\n-want, +held for:\n%s", tc.reason, diff)
			}
			a.findInputs(i) // Another MR reads the same Secret.
			got := reason.Join(i.notes)
			if !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") || len(i.notes) > 1 {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// provider-helm installs a chart again if it does not find the release. It looks in the namespace
// that the Release names, also if that is another one in the backup.
func TestAdoptHoldsReleases(t *testing.T) {
	secret := func(namespace string) *unstructured.Unstructured {
		return xptest.Object("v1", "Secret", namespace, "sh.helm.release.v1.shop.v2")
	}
	release := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.With(xptest.Object("helm.m.crossplane.io/v1beta1", "Release", "team-a", "shop", xptest.Field(map[string]any{}, "spec", "forProvider"),
			xptest.Annotated(xp.AnnotationExternalName, "shop"), xptest.Field(int64(2), "status", "atProvider", "revision")), o...)
	}
	noted := func(u *unstructured.Unstructured, namespace string, exists bool) *unstructured.Unstructured {
		xp.SetInputs(u, []xp.Input{{Ref: xp.RefTo(secret(namespace)), Exists: exists, Stored: exists}})

		return u
	}
	named := func() *unstructured.Unstructured {
		return release(xptest.Field("team-a", "spec", "forProvider", "namespace"))
	}
	const name = "sh.helm.release.v1.shop.v2"
	bring := "velero restore create --from-backup nightly --include-namespaces team-a --include-resources secrets"
	cases := map[string]struct {
		reason   string
		live     *cluster
		item     *unstructured.Unstructured
		spec     velerov1.RestoreSpec
		held     []adoption.Input
		reported string
	}{
		"LeftOut": {
			reason: "Without its Secret the provider would install the release a second time.", live: live(), item: noted(release(), "team-a", true), spec: velerov1.RestoreSpec{ExcludedResources: []string{"secrets"}},
			held: []adoption.Input{{Namespace: "team-a", Name: name, Stored: true, By: bring}},
		},
		"Live":  {reason: "The release's Secret is live.", live: live(secret("team-a")), item: noted(release(), "team-a", true)},
		"Other": {reason: "The release is in another cluster.", live: live(), item: noted(release(), "team-a", false)},
		"Mapped": {
			reason: "The release moves with the namespace of its Release.", live: live(), item: noted(release(), "team-a", true),
			spec: velerov1.RestoreSpec{NamespaceMapping: map[string]string{"team-a": "team-b"}}, held: []adoption.Input{{Namespace: "team-b", Name: name, Stored: true}},
		},
		"NamedAndMapped": {
			reason: "The Release names its namespace, so its release must stay there.", live: live(secret("team-b")), item: noted(named(), "team-a", true),
			spec: velerov1.RestoreSpec{NamespaceMapping: map[string]string{"team-a": "team-b"}},
			held: []adoption.Input{{Namespace: "team-a", Name: name, Stored: true, By: bring}},
		},
		"OldBackup": {
			reason: "An old backup has no note about where the release was.", live: live(), item: release(),
			reported: "Secret team-a/" + name + ", in which Helm keeps the release of Release team-a/shop, is not in the cluster",
		},
		"Never": {reason: "The release was never installed.", live: live(), item: release(xptest.Without("status"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			restore := restoreOf(nil)
			restore.Spec = tc.spec
			restore.Spec.BackupName = "nightly"
			i := &item{Unstructured: tc.item.DeepCopy(), original: tc.item, restore: restore, log: log}
			NewAdopt(Crossplane(), tc.live, nil, log, Shared{}).findInputs(i)
			var inputs []adoption.Input
			var status []string
			if held := i.holdOf(); held != nil {
				inputs, status = held.Inputs, held.Status
			}
			if diff := cmp.Diff(tc.held, inputs); diff != "" {
				t.Errorf("%s\n-want, +held for:\n%s", tc.reason, diff)
			}
			if (len(inputs) > 0) != slices.Contains(status, "atProvider") {
				t.Errorf("the status must keep the revision for later backups; got %q", status)
			}
			if got := reason.Join(i.notes); !strings.HasPrefix(got, tc.reported) || (got == "") != (tc.reported == "") {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.reported)
			}
		})
	}
}

// An MR with no other reason for a hold is held from its creation on, names the reason, and has an
// operation that waits.
func TestAdoptHoldsWhatLacksItsInput(t *testing.T) {
	mr := xptest.MR("db", xptest.JSON(`{"spec":{"forProvider":{"passwordSecretRef":{"namespace":"infra","name":"password","key":"p"}}}}`))
	secret := xptest.Object("v1", "Secret", "infra", "password")
	xp.SetInputs(mr, []xp.Input{{Ref: xp.RefTo(secret), Exists: true}})
	log, _ := logtest.NewNullLogger()
	out, err := NewAdopt(Crossplane(), live(), nil, log, Shared{}).Execute(inputFor(mr, restoreOf(nil)))
	if err != nil || out.OperationID != "Bucket.v1alpha1.cloud.example.org//db" {
		t.Fatalf("got the operation %q, error %v", out.OperationID, err)
	}
	u := &unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}
	h, err := adoption.HoldOf(u)
	if err != nil || h == nil || !xp.IsPaused(u) || xp.HasBackupMetadata(u) || !strings.Contains(h.Reason, "Secret infra/password, which its provider reads, is missing") {
		t.Errorf("got hold %+v, error %v, annotations %v", h, err, u.GetAnnotations())
	}
	out, err = NewAdopt(Crossplane(), live(secret), nil, log, Shared{}).Execute(inputFor(mr, restoreOf(nil)))
	if err != nil || out.OperationID != "" || xp.IsPaused(&unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}) {
		t.Errorf("with its Secret: %+v, error %v", out, err)
	}
}

// inspect reports it before a restore, and counts what the backup brings.
func TestDryRunHoldsWhatLacksItsInput(t *testing.T) {
	mr := xptest.MR("db", xptest.JSON(`{"spec":{"forProvider":{"passwordSecretRef":{"namespace":"infra","name":"password","key":"p"}}}}`))
	secret := xptest.Object("v1", "Secret", "infra", "password")
	xp.SetInputs(mr, []xp.Input{{Ref: xp.RefTo(secret), Exists: true}})
	for reason, tc := range map[string]struct {
		items []*unstructured.Unstructured
		want  report.Action
	}{
		"The backup lacks the Secret.": {items: []*unstructured.Unstructured{mr}, want: report.Keep},
		"The backup has the Secret.":   {items: []*unstructured.Unstructured{mr, secret}, want: report.Create},
	} {
		results, err := dryRunResults(t.Context(), packed(t, tc.items...), nil, restoreOf(nil))
		if err != nil {
			t.Fatal(err)
		}
		n := slices.IndexFunc(results, func(f report.ItemResult) bool { return f.Item.Kind == mr.GetKind() })
		said := strings.Contains(results[n].Outcome.Reason, "Secret infra/password, which its provider reads")
		if results[n].Outcome.Action != tc.want || said != (tc.want == report.Keep) {
			t.Errorf("%s\ngot %+v", reason, results[n])
		}
	}
}
