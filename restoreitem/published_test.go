package restoreitem

import (
	"slices"
	"strings"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A publisher that is released before its Secret is restored creates another, whether the Secret
// failed or the filters exclude it. So it is held until the Secret is back, and names the restore
// that brings it.
func TestAdoptAwaitsTheSecretThatTheBackupHas(t *testing.T) {
	claim, infra := xptest.Claim("o"), velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a", "infra"}}
	mr := xptest.MR("b", xptest.UID("old"), xptest.PublishesTo("infra", "s"), xptest.Published(), xptest.Labelled(xp.LabelClaimNamespace, "team-a"))
	xr := xptest.XR("x", xptest.UID("old"), xptest.PublishesTo("infra", "s"), xptest.Published(), xptest.ClaimedBy(claim))
	unnoted, local := xptest.With(mr, xptest.Without("metadata", xp.FieldPublished)), xptest.NamespacedMR("b", xptest.PublishesTo("", "s"), xptest.Published())
	lists := xptest.With(claim, xptest.RestoreFirst("buckets.cloud.example.org//b", "secrets/infra/s"))
	policy := &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: "p"}
	const bring = "velero restore create --from-backup nightly --include-namespaces infra --include-resources secrets"
	const bringLocal = "velero restore create --from-backup nightly --include-namespaces team-a --include-resources secrets"
	ofTeamA := ofNightly(velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, ExcludedResources: xp.NeverRestoredResources()}) // Velero adds these.
	inInfra := ofTeamA.DeepCopy()
	inInfra.Namespace = "infra"
	noSecrets := ofNightly(velerov1.RestoreSpec{ExcludedResources: []string{"secrets"}})
	there := func(more ...*unstructured.Unstructured) *cluster {
		for _, name := range []string{"infra", "kube-system"} {
			more = append(more, xptest.Object("v1", "Namespace", "", name))
		}

		return &cluster{objects: more, reconciled: publishing()}
	}
	type want struct {
		Secret bool
		By     string
		// First is what Velero is to restore first, also from a namespace that is not included.
		First []velero.ResourceIdentifier
	}
	asks := want{Secret: true, By: bring, First: []velero.ResourceIdentifier{id("", "secrets", "infra", "s")}}
	waits, byBring := want{Secret: true}, want{Secret: true, By: bring}
	runAdopts(t, map[string]adoptCase[want]{
		"Namespace":    {reason: "The Secret belongs to its publisher, whatever its namespace.", item: mr, live: there(), restore: ofTeamA, want: asks},
		"NamespaceXR":  {reason: "The Secret of an XR belongs to its publisher too.", item: xr, live: there(), restore: ofTeamA, want: asks},
		"NoNamespace":  {reason: "Velero would create the namespace too.", item: mr, live: &cluster{reconciled: publishing()}, restore: ofTeamA, want: byBring},
		"Unreconciled": {reason: "Neither Crossplane nor a provider publishes.", item: mr, live: &cluster{objects: there().objects}, restore: ofTeamA, want: byBring},
		"Exists":       {reason: "A live Secret stays as it is.", item: mr, live: there(xptest.Secret("s", xptest.In("infra"))), restore: ofTeamA, want: byBring},
		"Velero": {
			reason: "A Secret there can be a credential of Velero's.", item: mr, live: there(), restore: inInfra,
			want: want{Secret: true, By: bring + " --namespace infra"},
		},
		"Kubernetes": {
			reason: "A Secret there can be a bootstrap token.", item: xptest.With(mr, xptest.PublishesTo("kube-system", "s")), live: there(), restore: ofTeamA,
			want: want{Secret: true, By: strings.Replace(bring, "infra", "kube-system", 1)},
		},
		"Unnoted": {reason: "Without a note the backup may lack the Secret.", item: unnoted, live: there(), restore: ofTeamA},
		"Listed":  {reason: "In older backups the claim's list has the Secret.", item: unnoted, before: lists, live: there(), restore: ofTeamA, want: asks},
		"OtherResources": {
			reason: "The user has included other resources only.", item: mr, live: there(), want: byBring,
			restore: ofNightly(velerov1.RestoreSpec{IncludedResources: []string{"buckets.cloud.example.org"}}),
		},
		"ExcludedNamespace": {
			reason: "The user has excluded the namespace.", item: mr, live: there(), restore: ofNightly(velerov1.RestoreSpec{ExcludedNamespaces: []string{"inf*"}}),
			want: byBring,
		},
		"ListedButExcluded": {reason: "A list does not bring an excluded Secret.", item: mr, before: lists, live: there(), restore: noSecrets, want: byBring},
		"Policy": {
			reason: "A resource policy can leave the Secret out, and does so where Velero finds it.", item: mr, live: there(),
			restore: ofNightly(velerov1.RestoreSpec{ResourcePolicy: policy}), want: byBring,
		},
		"PolicyOfNamespace": {
			reason: "A resource policy is not for what is requested, as labels are not.", item: mr, live: there(), want: asks,
			restore: ofNightly(velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, ResourcePolicy: policy}),
		},
		"Schedule": {
			reason: "A Restore can use the last backup of a schedule.", item: local,
			restore: restoreWith(velerov1.RestoreSpec{ScheduleName: "daily", ExcludedResources: []string{"secrets"}}),
			want:    want{Secret: true, By: strings.Replace(bringLocal, "backup nightly", "schedule daily", 1)},
		},
		"Mapped": {
			reason: "The second restore needs the same namespace mapping.", item: local,
			restore: ofNightly(velerov1.RestoreSpec{ExcludedResources: []string{"secrets"}, NamespaceMapping: toCopy()}),
			want:    want{Secret: true, By: bringLocal + " --namespace-mappings team-a:copy"},
		},
		"MappedBeyond": {
			reason: "The mapped namespace must exist.", item: mr, live: there(), want: want{Secret: true, By: bring + " --namespace-mappings infra:elsewhere"},
			restore: ofNightly(velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, NamespaceMapping: map[string]string{"infra": "elsewhere"}}),
		},
		"Everything": {reason: "If the Secret fails, the same Restore brings it again.", item: mr, live: there(), want: waits},
		"Comes":      {reason: "The restore has the Secret.", item: mr, before: xptest.Secret("s", xptest.In("infra")), live: there(), restore: ofNightly(infra), want: waits},
		"ComesLater": {reason: "The claim's list brings the Secret after the MR.", item: mr, before: lists, live: there(), want: waits},
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		h, got := out.hold(t), want{First: out.AdditionalItems}
		if must := xp.HasAnnotation(out.object, xp.AnnotationMustRestore); must != (len(got.First) > 0) || xp.HasFlag(out.object, xp.FieldPublished) {
			t.Errorf("asks Velero to ignore the filters: %t; has notes: %t", must, xp.HasFlag(out.object, xp.FieldPublished))
		}
		got.Secret, got.By = h.Secret, h.SecretBy

		return got
	})
}

// publishing are the kinds that Crossplane and a provider reconcile.
func publishing() []string { return []string{xptest.ManagedKind, xptest.LegacyKind} }

// A Secret from a namespace that is not included must be the requested one, whatever the backup
// has.
func TestOrderTakesOnlyTheRequestedSecret(t *testing.T) {
	mr := xptest.MR("b", xptest.UID("old"), xptest.PublishesTo("infra", "s"), xptest.Published())
	secret := xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mr))
	restore := restoreWith(teamA())
	for name, tc := range map[string]struct {
		reason string
		secret *unstructured.Unstructured
		// missing means that the backup lacks the Secret, or Velero leaves it out.
		missing bool
		want    bool
	}{
		"OwnSecret":    {reason: "The publisher controls the Secret.", secret: secret, want: true},
		"Token":        {reason: "A token of a ServiceAccount is no connection secret.", secret: xptest.With(secret, xptest.Field("kubernetes.io/service-account-token", "type"))},
		"OtherKind":    {reason: "A custom resource can be called like a Secret.", secret: xptest.Object("example.org/v1", "Secret", "infra", "s")},
		"OtherItem":    {reason: "Velero has come to another item.", secret: xptest.Secret("t", xptest.Field("kubernetes.io/tls", "type")), missing: true, want: true},
		"Uncontrolled": {reason: "Without a controller the Secret has no known publisher.", secret: xptest.With(secret, xptest.Without("metadata", "ownerReferences"))},
		"OtherOwner":   {reason: "Another MR controls the Secret.", secret: xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(xptest.MR("c", xptest.UID("other"))))},
		"OtherUID":     {reason: "A publisher of the same name with another UID controls the Secret.", secret: xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(xptest.With(mr, xptest.UID("other"))))},
		"Opaque":       {reason: "An Opaque Secret is no connection secret.", secret: xptest.With(secret, xptest.Field("Opaque", "type"))},
	} {
		t.Run(name, func(t *testing.T) {
			shared, c := Shared{Requested: &RequestedItems{}}, live(xptest.Object("v1", "Namespace", "", "infra"))
			c.reconciled = publishing()
			adopt := newAdopt(c, shared)
			execute(t, adopt, mr, restore)
			if tc.missing {
				if ready, err := adopt.AreAdditionalItemsReady(nil, restore); !ready || err != nil {
					t.Fatal(ready, err)
				}
			}
			if out := execute(t, newOrder(shared), tc.secret, restore); out.SkipRestore == tc.want {
				t.Fatalf("%s\nrestored: %v, want %v", tc.reason, !out.SkipRestore, tc.want)
			}
			if out := adoptWith(t, shared, c, tc.secret, restore); tc.want && slices.Contains(out.codes, reason.RestoredWithoutOwner) {
				t.Errorf("the log must not warn of an owner that comes next; got %q", out.logged)
			}
		})
	}
}

// In a restore by labels a Secret may lack them.
func TestOrderBringsTheSecretOfWhatALabelBrings(t *testing.T) {
	local := xptest.NamespacedMR("b", xptest.PublishesTo("", "s"), xptest.Published())
	labelled := velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}}
	runOrders(t, map[string]orderCase{
		"MR": {
			reason: "The backup has the Secret, which may lack the label.", item: local, spec: labelled, want: ordering{First: []velero.ResourceIdentifier{id("", "secrets", "team-a", "s")}},
		},
		"Unnoted":    {reason: "Without a note the backup may lack the Secret.", item: xptest.With(local, xptest.Without("metadata", xp.FieldPublished)), spec: labelled},
		"Everything": {reason: "A restore of everything brings the Secret without a request.", item: local},
	})
}

// A Secret's data may be nowhere else, so it is restored also if its publisher's kind can't be
// read.
func TestSecretComesBackWithoutAnOwnerThatCannotBeRead(t *testing.T) {
	mr := xptest.MR("b", xptest.UID("old"), xptest.PublishesTo("infra", "s"))
	secret := xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mr))
	log, hook := logtest.NewNullLogger()
	out, err := NewOrder(Crossplane(), kindsFn(failing), log, Shared{}).Execute(inputFor(secret, restoreOf(nil)))
	if err != nil || out.SkipRestore || len(out.AdditionalItems) > 0 || len(hook.AllEntries()) != 1 {
		t.Errorf("the plugin must not ask for the owner, and must name it; got %+v, %v, %v", out, err, hook.AllEntries())
	}
	got := adopt(t, failingCluster(errAPI), secret, restoreOf(nil))
	if got.err != nil || got.object == nil || len(got.object.GetOwnerReferences()) > 0 || len(got.logged) != 1 || !strings.Contains(got.logged[0], errAPI.Error()) {
		t.Errorf("the plugin must name the owner that it leaves out; got %+v", got)
	}
}

func TestAdoptAwaitsInputs(t *testing.T) {
	secretIn := func(namespace, name string) *unstructured.Unstructured {
		return xptest.Object("v1", "Secret", namespace, name, xptest.Field("Opaque", "type"))
	}
	noted := func(u, secret *unstructured.Unstructured, exists, stored bool) *unstructured.Unstructured {
		u = u.DeepCopy()
		xp.SetInputs(u, []xp.Input{{Ref: xp.RefTo(secret), Exists: exists, Stored: stored}})

		return u
	}
	password, copied := secretIn("infra", "password"), secretIn("copy", "password")
	mr := xptest.MR("db", xptest.JSON(`{"spec":{"forProvider":{"passwordSecretRef":{"namespace":"infra","name":"password","key":"p"}}}}`))
	local := xptest.NamespacedMR("db", xptest.JSON(`{"spec":{"forProvider":{"passwordSecretRef":{"name":"password"}}}}`))
	former := hold.Hold{Restore: "velero/first", Inputs: []hold.Input{{Namespace: "infra", Name: "password"}}}
	// provider-helm installs a chart again if it does not find the release. It looks in the namespace
	// that the Release names, also if that is another one in the backup.
	helm := secretIn("team-a", "sh.helm.release.v1.shop.v2")
	release := xptest.Object("helm.m.crossplane.io/v1beta1", "Release", "team-a", "shop", xptest.Field(map[string]any{}, "spec", "forProvider"),
		xptest.Annotated(xp.AnnotationExternalName, "shop"), xptest.Field(int64(2), "status", "atProvider", "revision"))
	// provider-terraform creates everything again if it does not find the state of a Workspace. It
	// looks in the namespace that its code names.
	state := secretIn("infra", "tfstate-net-s")
	workspace := xptest.Object("tf.m.upbound.io/v1beta1", "Workspace", "team-a", "net", xptest.Field(map[string]any{}, "spec", "forProvider"),
		xptest.Annotated(xp.AnnotationExternalName, "net"))
	ofTeamA, noSecrets := ofNightly(teamA()), ofNightly(velerov1.RestoreSpec{ExcludedResources: []string{"secrets"}})
	mapped := func(from, to string) *velerov1.Restore {
		return ofNightly(velerov1.RestoreSpec{NamespaceMapping: map[string]string{from: to}})
	}
	type want struct {
		// Held is what it is held for, and Noted what a note names as missing or as not read.
		Held  []hold.Input
		Noted bool
	}
	waits := func(u *unstructured.Unstructured, stored bool, bring ...string) want {
		in := hold.Input{Namespace: u.GetNamespace(), Name: u.GetName(), Stored: stored}
		for _, from := range bring {
			in.By = "velero restore create --from-backup nightly --include-namespaces " + from + " --include-resources secrets"
		}

		return want{Held: []hold.Input{in}}
	}
	runAdopts(t, map[string]adoptCase[want]{
		"Missing":       {reason: "Without the Secret the provider may create another password.", item: mr, want: want{Noted: true}},
		"Live":          {reason: "The Secret is live.", live: live(password), item: mr},
		"Restored":      {reason: "The restore has reached the Secret, so the MR waits for it.", before: password, item: mr, want: waits(password, true)},
		"Mapped":        {reason: "The restored MR names the mapped namespace.", restore: mapped("infra", "copy"), before: password, item: mr, want: waits(copied, true)},
		"MappedAndLive": {reason: "The plugin looks there.", live: live(copied), restore: mapped("infra", "copy"), item: noted(mr, password, true, true)},
		"Existed":       {reason: "The source cluster had the Secret, so the MR waits.", item: noted(mr, password, true, false), want: waits(password, false)},
		"Stored":        {reason: "The backup has the Secret, so the MR waits.", item: noted(mr, password, true, true), want: waits(password, true)},
		"LeftOut":       {reason: "Another restore can bring it.", item: noted(mr, password, true, true), restore: ofTeamA, want: waits(password, true, "infra")},
		"InNoBackup":    {reason: "No other restore can bring it.", item: noted(mr, password, true, false), restore: ofTeamA, want: waits(password, false)},
		"NeverThere":    {reason: "An optional Secret that the source lacked must not hold the MR for ever.", item: noted(mr, password, false, false)},
		"Unread":        {reason: "An API error holds the MR as if it were missing.", live: failingCluster(errAPI), item: noted(mr, password, true, false), want: waits(password, false)},
		"Paused": {
			reason: "No provider reads the Secret of a paused MR.", item: xptest.With(noted(mr, password, true, false), xptest.Annotated(xp.AnnotationPaused, "true")),
			want: want{Noted: true},
		},
		"HeldBefore": {reason: "The MR was held for it in the source.", item: held(noted(mr, password, false, false), former), want: waits(password, false)},
		"Local": {
			reason: "A Secret in the MR's own namespace moves with the MR.", live: live(copied), restore: mapped("team-a", "copy"),
			item: noted(local, secretIn("team-a", "password"), true, true),
		},
		"Forged": {
			reason: "The note counts only for Secrets that the MR itself names.", live: live(password), item: noted(mr, secretIn("velero", "other"), true, false),
		},
		"Elsewhere": {reason: "A Secret of the same name in another namespace does not count.", live: live(secretIn("team-a", "password")), item: mr, want: want{Noted: true}},
		"Unknown":   {reason: "The note names a Secret whose existence is unknown.", live: failingCluster(errAPI), item: mr, want: want{Noted: true}},
		"Release":   {reason: "The provider would install the release a second time.", item: noted(release, helm, true, true), restore: noSecrets, want: waits(helm, true, "team-a")},
		"ReleaseMapped": {
			reason: "The release moves with the namespace of its Release.", item: noted(release, helm, true, true), restore: mapped("team-a", "team-b"),
			want: waits(secretIn("team-b", helm.GetName()), true),
		},
		"ReleaseNamed": {
			reason:  "The Release names its namespace, so its release must stay there.",
			item:    noted(xptest.With(release, xptest.Field("team-a", "spec", "forProvider", "namespace")), helm, true, true),
			restore: mapped("team-a", "team-b"), live: live(secretIn("team-b", helm.GetName())), want: waits(helm, true, "team-a"),
		},
		"ReleaseOfOldBackup": {reason: "An old backup has no note about where the release was.", item: release, want: want{Noted: true}},
		"NeverReleased":      {reason: "The release was never installed.", item: xptest.With(release, xptest.Without("status"))},
		"Workspace":          {reason: "Terraform would create everything again.", item: noted(workspace, state, true, true), restore: ofTeamA, want: waits(state, true, "infra")},
		"WorkspaceElsewhere": {reason: "The state is in another cluster.", item: noted(workspace, state, false, false), restore: ofTeamA},
		"WorkspaceMapped": {
			reason: "Terraform's code still names the former namespace.", live: live(secretIn("copy", state.GetName())), item: noted(workspace, state, true, true),
			restore: mapped("infra", "copy"), want: waits(state, true, "infra"),
		},
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		h := ptr.Deref(out.hold(t), hold.Hold{})
		if out.item.GetKind() == "Release" && out.note != "" && !strings.Contains(out.note, "in which Helm keeps the release of Release team-a/shop") {
			t.Errorf("the note must name what is missing: %s", out.note)
		}
		if of := out.item.GetKind() == "Release" && len(h.Inputs) > 0; of != slices.Contains(h.Status, "atProvider") {
			t.Errorf("the status must keep the revision for later backups; got %q", h.Status)
		}

		return want{Held: h.Inputs, Noted: strings.Contains(out.note, "[InputMissing]")}
	})
}

// Many MRs can read one Secret.
func TestAdoptNotesAMissingInputOnce(t *testing.T) {
	a := newAdopt(live(), Shared{})
	for n, name := range []string{"a", "b"} {
		mr := xptest.MR(name, xptest.JSON(`{"spec":{"forProvider":{"passwordSecretRef":{"namespace":"infra","name":"password","key":"p"}}}}`))
		if id := execute(t, a, mr, restoreOf(nil)).OperationID; strings.Contains(id, "[InputMissing]") != (n == 0) {
			t.Errorf("got the operation %q of the MR %s", id, name)
		}
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
		results := dryRunOf(t, nil, restoreOf(nil), tc.items...)
		n := slices.IndexFunc(results, func(f report.ItemResult) bool { return f.Item.Kind == mr.GetKind() })
		said := strings.Contains(results[n].Outcome.Reason, "Secret infra/password, which its provider reads")
		if results[n].Outcome.Action != tc.want || said != (tc.want == report.Keep) {
			t.Errorf("%s\ngot %+v", reason, results[n])
		}
	}
}

// ofNightly returns a Restore of the backup nightly.
func ofNightly(spec velerov1.RestoreSpec) *velerov1.Restore {
	spec.BackupName = "nightly"

	return restoreWith(spec)
}
