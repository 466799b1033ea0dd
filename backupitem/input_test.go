package backupitem

import (
	"fmt"
	"strings"
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestTreeTakesInputSecrets(t *testing.T) {
	reads := func(secret string) *unstructured.Unstructured {
		return xptest.MR("db", xptest.Field(map[string]any{"namespace": "infra", "name": secret, "key": "p"}, "spec", "forProvider", "passwordSecretRef"))
	}
	include := map[string]string{"provider-credentials": "include"}
	password := []velero.ResourceIdentifier{id("", "secrets", "infra", "password")}
	teamA := velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}
	const without = "Secret infra/password [InputMissing]"
	runTakes(t, map[string]takeCase{
		"Here":      {reason: "The backup already has the Secret.", item: reads("password"), noted: "exists stored"},
		"Elsewhere": {reason: "Without the Secret a provider may create a new password for a database.", item: reads("password"), spec: teamA, left: []string{without}, noted: "exists"},
		"NoSecrets": {reason: "A resource filter leaves the Secret out too.", item: reads("password"), spec: velerov1.BackupSpec{ExcludedResources: []string{"secrets"}}, left: []string{without}, noted: "exists"},
		"Included":  {reason: "The setting includes such Secrets in backups.", item: reads("password"), config: include, spec: teamA, want: password, beyond: true, noted: "exists stored"},
		"ExcludedDespiteSetting": {
			reason: "A user's exclusion overrides the setting, as for credentials.", item: reads("password"), config: include, spec: velerov1.BackupSpec{ExcludedNamespaces: []string{"infra"}},
			left: []string{"secrets infra/password [ExcludedByFilter]"}, noted: "exists",
		},
		"KeptOut": {
			reason: "A Secret that a user excludes from backups stays out.", item: reads("locked"), config: include, spec: teamA,
			left: []string{"Secret infra/locked [ExcludedByLabel]"}, noted: "exists",
		},
		"Policy": {
			reason: "A resource policy finds no other kinds than those in it.", item: reads("password"), left: []string{without}, noted: "exists",
			spec: velerov1.BackupSpec{ResourcePolicy: &corev1.TypedLocalObjectReference{Kind: "configmap", Name: "p"}},
		},
		"Gone":          {reason: "The plugin names a missing Secret.", item: reads("gone"), config: include, spec: teamA, left: []string{"Secret infra/gone [InputMissing]"}, noted: "missing"},
		"GoneByDefault": {reason: "A restore must not wait for a Secret that the source lacked.", item: reads("gone"), noted: "missing"},
		"Labelled": {
			reason: "The Secret may lack the backup's label.", item: reads("password"), noted: "exists",
			spec: velerov1.BackupSpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
		},
		"Local": {
			reason: "A namespaced MR reads Secrets in its own namespace.", noted: "exists stored",
			item: xptest.NamespacedMR("db", xptest.Field(map[string]any{"name": "own", "key": "p"}, "spec", "forProvider", "passwordSecretRef")),
		},
		"API": {
			reason: "An unreadable setting equals no setting.", item: reads("password"), spec: teamA, down: true,
			left: []string{
				without, unread("ManagedResourceDefinition Bucket"), "the setting provider-credentials [SettingsNotRead]", unread("Secret infra/password"),
			},
		},
		"NotManaged": {
			reason: "Only an MR has a provider that reads Secrets.", spec: teamA,
			item: xptest.Object("m.example.org/v1", "Thing", "", "t", xptest.JSON(`{"spec":{"forProvider":{"aSecretRef":{"namespace":"infra","name":"password"}}}}`)),
		},
	}, xptest.Secret("password", xptest.In("infra")), xptest.Object("v1", "Namespace", "", "infra"), xptest.Secret("own"),
		xptest.Object("v1", "ConfigMap", "", "p", xptest.JSON(`{"data":{"p":"version: v1\nnamespacedFilterPolicies: [{namespaces: [infra], resourceFilters: [{kinds: [pods]}]}]"}}`)),
		xptest.Secret("locked", xptest.In("infra"), xptest.Labelled("velero.io/exclude-from-backup", "true")))
}

// notedInputs returns what an MR's stored copy has of the Secrets that its provider reads.
func notedInputs(u *unstructured.Unstructured) string {
	var said []string
	for _, r := range xp.InputSecrets(u) {
		in, ok := xp.Inputs(u)[r]
		switch {
		case !ok:
		case in.Stored:
			said = append(said, "exists stored")
		case in.Exists:
			said = append(said, "exists")
		default:
			said = append(said, "missing")
		}
	}

	return strings.Join(said, ", ")
}

// Nothing in Helm's Secret shows which Release manages it, so a tenant's Release takes none from
// another namespace.
func TestTreeTakesReleases(t *testing.T) {
	const name = "sh.helm.release.v1.shop.v"
	release := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.With(xptest.Object("helm.crossplane.io/v1beta1", "Release", "", "shop", xptest.Field("web", "spec", "forProvider", "namespace"),
			xptest.Annotated(xp.AnnotationExternalName, "shop"), xptest.Field(int64(3), "status", "atProvider", "revision")), o...)
	}
	local := func(namespace string) *unstructured.Unstructured {
		return release(xptest.Field("helm.m.crossplane.io/v1beta1", "apiVersion"), xptest.In("team-a"), xptest.Field(namespace, "spec", "forProvider", "namespace"))
	}
	include := map[string]string{"provider-credentials": "include"}
	teamA := velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}
	const left = "Secret web/" + name + "3 [InputMissing]"
	runTakes(t, map[string]takeCase{
		"Elsewhere":    {reason: "The plugin names the Secret that the backup lacks.", item: release(), spec: teamA, left: []string{left}, noted: "exists"},
		"NoSecrets":    {reason: "The plugin names a Secret that a resource filter leaves out.", item: release(), spec: velerov1.BackupSpec{ExcludedResources: []string{"secrets"}}, left: []string{left}, noted: "exists"},
		"OtherCluster": {reason: "The release is in another cluster, so this one has no Secret.", item: release(xptest.Annotated(xp.AnnotationExternalName, "b")), spec: teamA, noted: "missing"},
		"Included": {
			reason: "The setting includes such Secrets, also of older revisions, except excluded ones.", item: release(), config: include, spec: teamA, noted: "exists stored",
			beyond: true, want: []velero.ResourceIdentifier{id("", "secrets", "web", name+"3"), id("", "secrets", "web", name+"1")},
		},
		"Tenant":     {reason: "A tenant can name any release, so its Secret stays out.", item: local("web"), config: include, spec: teamA, left: []string{left}, noted: "exists"},
		"TenantsOwn": {reason: "The release is in the tenant's own namespace.", item: local("team-a"), spec: teamA, noted: "exists stored"},
	}, xptest.Secret(name+"3", xptest.In("web")), xptest.Secret(name+"2", xptest.In("web"), xptest.Labelled(excludeLabel, "true")), xptest.Secret(name+"1", xptest.In("web")),
		xptest.Secret(name+"3", xptest.In("team-a")), xptest.Object("v1", "Namespace", "", "web"))
}

// Each MR can read a Secret in another namespace, and the cache of lists is small.
func TestInputSecretsOfManyNamespacesAreReadAtOnce(t *testing.T) {
	const many = 100
	c := clusterOf()
	for n := range many {
		s := xptest.Secret("s", xptest.In(fmt.Sprint("n", n)))
		c.objects[xp.RefTo(s).ID()] = s
	}
	s := newSession(t, c)
	for n := range 2 * many {
		mr := xptest.MR("db", xptest.Field(map[string]any{"namespace": fmt.Sprint("n", n%many), "name": "s"}, "spec", "forProvider", "passwordSecretRef"))
		if got := s.take(mr, &velerov1.Backup{}); notedInputs(got.Stored) != "exists stored" {
			t.Fatalf("got %v", got.Stored)
		}
	}
	if len(c.lists) != maxNamespaceLists+1 {
		t.Errorf("%d lists: %v", len(c.lists), c.lists)
	}
}

// Thousands of MRs can read the same Secret, or one each.
func TestInputSecretsAreReadAtOnce(t *testing.T) {
	c := clusterOf(xptest.Secret("a", xptest.In("infra")), xptest.Secret("b", xptest.In("infra")), xptest.Object("v1", "Namespace", "", "infra"))
	c.settings = map[string]string{"provider-credentials": "include"}
	s := newSession(t, c)
	for _, name := range []string{"a", "b", "a"} {
		mr := xptest.MR("db-"+name, xptest.Field(map[string]any{"namespace": "infra", "name": name}, "spec", "forProvider", "passwordSecretRef"))
		if got := s.take(mr, &velerov1.Backup{}); len(got.Items) != 1 {
			t.Errorf("got %v", got.Items)
		}
	}
	if len(c.lists) != 1 || len(s.codes()) > 0 {
		t.Errorf("listed %v, warned %v", c.lists, s.codes())
	}
}
