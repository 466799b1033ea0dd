package restoreitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A publisher that is released before its Secret is restored creates another, whether the Secret
// failed or the filters exclude it. So it is held until the Secret is back, and names the restore
// that brings it.
func TestAdoptAwaitsTheSecretThatTheBackupHas(t *testing.T) {
	claim := xptest.Claim("o")
	mr := xptest.MR("b", xptest.UID("old"), xptest.PublishesTo("infra", "s"), xptest.Published(), xptest.Labelled(xp.LabelClaimNamespace, "team-a"))
	xr := xptest.XR("x", xptest.UID("old"), xptest.PublishesTo("infra", "s"), xptest.Published(), xptest.ClaimedBy(claim))
	local := xptest.NamespacedMR("b", xptest.PublishesTo("", "s"), xptest.Published())
	infra := xptest.Object("v1", "Namespace", "", "infra")
	lists := xptest.With(claim, xptest.RestoreFirst("buckets.cloud.example.org//b", "secrets/infra/s"))
	asked := []velero.ResourceIdentifier{id("", "secrets", "infra", "s")}
	const bring = "velero restore create --from-backup nightly --include-namespaces infra --include-resources secrets"
	const bringLocal = "velero restore create --from-backup nightly --include-namespaces team-a --include-resources secrets"
	spec := func(change func(s *velerov1.RestoreSpec)) velerov1.RestoreSpec {
		s := velerov1.RestoreSpec{BackupName: "nightly"}
		change(&s)

		return s
	}
	ofTeamA := spec(func(s *velerov1.RestoreSpec) {
		s.IncludedNamespaces, s.ExcludedResources = []string{"team-a"}, xp.NeverRestoredResources() // Velero adds these.
	})
	type want struct {
		Secret bool
		By     string
		// First is what Velero is to restore first, also from a namespace that is not included.
		First []velero.ResourceIdentifier
	}
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		// before is what the restore has come to before.
		before  *unstructured.Unstructured
		spec    velerov1.RestoreSpec
		in      string
		missing bool
		// change changes the cluster.
		change func(c *cluster)
		want   want
	}{
		"Velero": {
			reason: "A Secret there can be a credential of Velero's.", item: xptest.With(mr, xptest.PublishesTo("velero", "s")), spec: ofTeamA,
			want: want{Secret: true, By: strings.Replace(bring, "infra", "velero", 1)},
		},
		"OtherVeleroItself": {
			reason: "Velero can run in another namespace.", item: mr, in: "infra", spec: ofTeamA, want: want{Secret: true, By: bring + " --namespace infra"},
		},
		"Kubernetes": {
			reason: "A Secret there can be a bootstrap token.", item: xptest.With(mr, xptest.PublishesTo("kube-system", "s")), spec: ofTeamA,
			want: want{Secret: true, By: strings.Replace(bring, "infra", "kube-system", 1)},
		},
		"Crossplane": {
			reason: "Crossplane's documentation has v1 publish there.", item: mr, spec: ofTeamA, change: func(c *cluster) { c.crossplane = "infra" },
			want: want{Secret: true, By: bring, First: asked},
		},
		"Unreconciled": {
			reason: "Nothing publishes for an object that neither Crossplane nor a provider reconciles.", item: mr, spec: ofTeamA,
			change: func(c *cluster) { c.reconciled = nil }, want: want{Secret: true, By: bring},
		},
		"Exists": {
			reason: "A live Secret stays as it is.", item: mr, spec: ofTeamA,
			change: func(c *cluster) { c.objects = append(c.objects, xptest.Secret("s", xptest.In("infra"))) }, want: want{Secret: true, By: bring},
		},
		"Namespace": {
			reason: "The Secret belongs to its publisher, whatever its namespace.", item: mr, spec: ofTeamA, want: want{Secret: true, By: bring, First: asked},
		},
		"NamespaceXR": {reason: "The Secret of an XR belongs to its publisher too.", item: xr, spec: ofTeamA, want: want{Secret: true, By: bring, First: asked}},
		"NoNamespace": {
			reason: "Velero would create the namespace too.", item: mr, spec: ofTeamA, missing: true, want: want{Secret: true, By: bring},
		},
		"Unnoted": {reason: "Without a note the backup may lack the Secret.", item: xptest.With(mr, xptest.Without("metadata", xp.FieldPublished)), spec: ofTeamA},
		"Listed": {
			reason: "In older backups the claim's list has the Secret.", item: xptest.With(mr, xptest.Without("metadata", xp.FieldPublished)), before: lists,
			spec: ofTeamA, want: want{Secret: true, By: bring, First: asked},
		},
		"ExcludedNamespace": {
			reason: "The user has excluded the namespace.", item: mr,
			spec: spec(func(s *velerov1.RestoreSpec) { s.ExcludedNamespaces = []string{"inf*"} }), want: want{Secret: true, By: bring},
		},
		"ExcludedResource": {
			reason: "The user has excluded Secrets.", item: mr,
			spec: spec(func(s *velerov1.RestoreSpec) { s.ExcludedResources = []string{"secrets"} }), want: want{Secret: true, By: bring},
		},
		"OtherResources": {
			reason: "The user has included other resources only.", item: mr,
			spec: spec(func(s *velerov1.RestoreSpec) { s.IncludedResources = []string{"buckets.cloud.example.org"} }), want: want{Secret: true, By: bring},
		},
		"ListedButExcluded": {
			reason: "A list does not bring an excluded Secret.", item: mr, before: lists,
			spec: spec(func(s *velerov1.RestoreSpec) { s.ExcludedResources = []string{"secrets"} }), want: want{Secret: true, By: bring},
		},
		"Policy": {
			reason: "A resource policy can leave the Secret out, and does so where Velero finds it.", item: mr,
			spec: spec(func(s *velerov1.RestoreSpec) {
				s.ResourcePolicy = &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: "p"}
			}), want: want{Secret: true, By: bring},
		},
		"PolicyOfNamespace": {
			reason: "A resource policy is not for what is requested, as labels are not.", item: mr, spec: spec(func(s *velerov1.RestoreSpec) {
				s.IncludedNamespaces, s.ResourcePolicy = []string{"team-a"}, &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: "p"}
			}), want: want{Secret: true, By: bring, First: asked},
		},
		"Label": {
			reason: "The Secret may lack the label.", item: mr, spec: spec(func(s *velerov1.RestoreSpec) { s.LabelSelector = &metav1.LabelSelector{} }),
			want: want{Secret: true, By: bring},
		},
		"Labels": {
			reason: "The Secret may lack each of the labels.", item: local,
			spec: spec(func(s *velerov1.RestoreSpec) { s.OrLabelSelectors = []*metav1.LabelSelector{{}} }), want: want{Secret: true, By: bringLocal},
		},
		"Schedule": {
			reason: "A Restore can use the last backup of a schedule.", item: local,
			spec: velerov1.RestoreSpec{ScheduleName: "daily", ExcludedResources: []string{"secrets"}},
			want: want{Secret: true, By: strings.Replace(bringLocal, "backup nightly", "schedule daily", 1)},
		},
		"Mapped": {
			reason: "The second restore needs the same namespace mapping.", item: local,
			spec: spec(func(s *velerov1.RestoreSpec) {
				s.ExcludedResources, s.NamespaceMapping = []string{"secrets"}, map[string]string{"team-a": "copy"}
			}), want: want{Secret: true, By: bringLocal + " --namespace-mappings team-a:copy"},
		},
		"MappedBeyond": {
			reason: "The mapped namespace must exist.", item: mr, spec: spec(func(s *velerov1.RestoreSpec) {
				s.IncludedNamespaces, s.NamespaceMapping = []string{"team-a"}, map[string]string{"infra": "elsewhere"}
			}), want: want{Secret: true, By: bring + " --namespace-mappings infra:elsewhere"},
		},
		"OtherVelero": {
			reason: "Velero can run in another namespace.", item: mr, in: "backups", spec: ofTeamA, want: want{Secret: true, By: bring + " --namespace backups", First: asked},
		},
		"Everything": {reason: "If the Secret fails, the same Restore brings it again.", item: mr, spec: spec(func(*velerov1.RestoreSpec) {}), want: want{Secret: true}},
		"Comes": {
			reason: "The restore has the Secret.", item: mr, before: xptest.Secret("s", xptest.In("infra")),
			spec: spec(func(s *velerov1.RestoreSpec) { s.IncludedNamespaces = []string{"team-a", "infra"} }), want: want{Secret: true},
		},
		"ComesLater": {
			reason: "The claim's list brings the Secret after the MR.", item: mr, before: lists, spec: spec(func(*velerov1.RestoreSpec) {}), want: want{Secret: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			requested, restore := &RequestedItems{}, restoreOf(nil)
			restore.Spec = tc.spec
			if tc.in != "" {
				restore.Namespace = tc.in
			}
			if tc.before != nil {
				if _, err := NewOrder(Crossplane(), kindsFn(served), log, Shared{Requested: requested}).Execute(inputFor(tc.before, restore)); err != nil {
					t.Fatal(err)
				}
			}
			c := live(infra)
			if tc.missing {
				c = live()
			}
			c.objects, c.reconciled = append(c.objects, xptest.Object("v1", "Namespace", "", "velero"), xptest.Object("v1", "Namespace", "", "kube-system")), publishing()
			if tc.change != nil {
				tc.change(c)
			}
			out, err := NewAdopt(Crossplane(), c, nil, log, Shared{Requested: requested}).Execute(inputFor(tc.item, restore))
			if err != nil {
				t.Fatal(err)
			}
			u := &unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}
			h, err := adoption.HoldOf(u)
			if err != nil || h == nil {
				t.Fatal(h, err)
			}
			got := want{Secret: h.Secret, By: h.SecretBy, First: out.AdditionalItems}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if must := xp.HasAnnotation(u, xp.AnnotationMustRestore); must != (len(tc.want.First) > 0) || xp.HasFlag(u, xp.FieldPublished) {
				t.Errorf("%s\nasks Velero to ignore the filters: %v; notes are left: %v", tc.reason, must, xp.HasFlag(u, xp.FieldPublished))
			}
		})
	}
}

// publishing are the kinds that Crossplane and a provider reconcile.
func publishing() []string { return []string{xptest.ManagedKind, xptest.LegacyKind} }

// A Secret from a namespace that is not included must be the requested one, whatever the backup
// has.
func TestOrderTakesOnlyTheRequestedSecret(t *testing.T) {
	mr := xptest.MR("b", xptest.UID("old"), xptest.PublishesTo("infra", "s"), xptest.Published())
	secret := xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mr))
	restore := restoreOf(nil)
	restore.Spec = teamA()
	cases := map[string]struct {
		reason string
		secret *unstructured.Unstructured
		// missing means that the backup lacks the Secret, or Velero leaves it out.
		missing bool
		want    bool
	}{
		"OwnSecret":    {reason: "The publisher controls the Secret.", secret: secret, want: true},
		"OtherName":    {reason: "The file of the Secret has another one.", secret: xptest.With(secret, xptest.Field("t", "metadata", "name"))},
		"OtherPlace":   {reason: "Velero would create the restored tenant's Secret in the other namespace.", secret: xptest.With(secret, xptest.In("team-a"), xptest.Field("Opaque", "type"))},
		"Token":        {reason: "A token of a ServiceAccount is no connection secret.", secret: xptest.With(secret, xptest.Field("kubernetes.io/service-account-token", "type"))},
		"OtherKind":    {reason: "A custom resource can be called like a Secret.", secret: xptest.Object("example.org/v1", "Secret", "infra", "s")},
		"OtherItem":    {reason: "Velero has come to another item.", secret: xptest.Secret("t", xptest.Field("kubernetes.io/tls", "type")), missing: true, want: true},
		"Uncontrolled": {reason: "Without a controller the Secret has no known publisher.", secret: xptest.With(secret, xptest.Without("metadata", "ownerReferences"))},
		"OtherOwner":   {reason: "Another MR controls the Secret.", secret: xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(xptest.MR("c", xptest.UID("other"))))},
		"OtherUID":     {reason: "A publisher of the same name with another UID controls the Secret.", secret: xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(xptest.With(mr, xptest.UID("other"))))},
		"Opaque":       {reason: "An Opaque Secret is no connection secret.", secret: xptest.With(secret, xptest.Field("Opaque", "type"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, hook := logtest.NewNullLogger()
			requested := &RequestedItems{}
			order := NewOrder(Crossplane(), kindsFn(served), log, Shared{Requested: requested})
			c := live(xptest.Object("v1", "Namespace", "", "infra"))
			c.reconciled = publishing()
			adopt := NewAdopt(Crossplane(), c, nil, log, Shared{Requested: requested})
			if _, err := adopt.Execute(inputFor(mr, restore)); err != nil {
				t.Fatal(err)
			}
			if tc.missing {
				if ready, err := adopt.AreAdditionalItemsReady(nil, restore); !ready || err != nil {
					t.Fatal(ready, err)
				}
			}
			out, err := order.Execute(inputFor(tc.secret, restore))
			if err != nil {
				t.Fatal(err)
			}
			if out.SkipRestore == tc.want {
				t.Fatalf("%s\nrestored: %v, want %v", tc.reason, !out.SkipRestore, tc.want)
			}
			if !tc.want {
				return
			}
			hook.Reset()
			if _, err := adopt.Execute(inputFor(tc.secret, restore)); err != nil {
				t.Fatal(err)
			}
			for _, e := range hook.AllEntries() {
				if name == "OwnSecret" && strings.HasPrefix(e.Message, "Restored without") {
					t.Errorf("the log must not warn of an owner that comes next; got %q", e.Message)
				}
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
	unreadable := func(schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
		return schema.GroupVersionResource{}, false, errAPI
	}
	out, err := NewOrder(Crossplane(), kindsFn(unreadable), log, Shared{}).Execute(inputFor(secret, restoreOf(nil)))
	if err != nil || out.SkipRestore || len(out.AdditionalItems) > 0 || len(hook.AllEntries()) != 1 {
		t.Errorf("the plugin must not ask for the owner, and must name it; got %+v, %v, %v", out, err, hook.AllEntries())
	}
	if _, err := NewOrder(Crossplane(), kindsFn(unreadable), log, Shared{}).Execute(inputFor(xptest.MR("c", xptest.ControlledBy(xptest.XR("x"))), restoreOf(nil))); err == nil {
		t.Error("a failure must not bring a composed resource before its XR")
	}
	got := adopt(t, failingCluster(errAPI), secret, restoreOf(nil))
	if got.err != nil || got.object == nil || len(got.object.GetOwnerReferences()) > 0 || len(got.logged) != 1 || !strings.Contains(got.logged[0], errAPI.Error()) {
		t.Errorf("the plugin must name the owner that it leaves out; got %+v", got)
	}
}
