package backupitem

import (
	"fmt"
	"slices"
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
	const without = "Secret infra/password: its provider reads it, and without it fails"
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		config map[string]string
		spec   velerov1.BackupSpec
		down   bool
		want   []velero.ResourceIdentifier
		left   []string
		// noted is the record of the Secret for a restore: whether it existed, and whether the
		// backup has it.
		noted string
	}{
		"Here":      {reason: "The backup already has the Secret.", item: reads("password"), noted: "exists stored"},
		"Elsewhere": {reason: "Without the Secret a provider may create a new password for a database.", item: reads("password"), spec: teamA, left: []string{without}, noted: "exists"},
		"Excluded":  {reason: "An excluded namespace leaves the Secret out too.", item: reads("password"), spec: velerov1.BackupSpec{ExcludedNamespaces: []string{"infra"}}, left: []string{without}, noted: "exists"},
		"NoSecrets": {reason: "A resource filter leaves the Secret out too.", item: reads("password"), spec: velerov1.BackupSpec{ExcludedResources: []string{"secrets"}}, left: []string{without}, noted: "exists"},
		"Included":  {reason: "The setting includes such Secrets in backups.", item: reads("password"), config: include, spec: teamA, want: password, noted: "exists stored"},
		"ExcludedDespiteSetting": {
			reason: "A user's exclusion overrides the setting, as for credentials.", item: reads("password"), config: include, spec: velerov1.BackupSpec{ExcludedNamespaces: []string{"infra"}},
			left: []string{"secrets infra/password: its namespace is not in the backup"}, noted: "exists",
		},
		"KeptOut": {
			reason: "A Secret that a user excludes from backups stays out.", item: reads("locked"), config: include, spec: teamA,
			left: []string{"Secret infra/locked: its label velero.io/exclude-from-backup keeps it out of backups"}, noted: "exists",
		},
		"Policy": {
			reason: "A resource policy finds no other kinds than those in it.", item: reads("password"), left: []string{without}, noted: "exists",
			spec: velerov1.BackupSpec{ResourcePolicy: &corev1.TypedLocalObjectReference{Kind: "configmap", Name: "p"}},
		},
		"Gone":          {reason: "The plugin names a missing Secret.", item: reads("gone"), config: include, spec: teamA, left: []string{"Secret infra/gone: it does not exist"}, noted: "missing"},
		"GoneByDefault": {reason: "A restore must not wait for a Secret that the source lacked.", item: reads("gone"), noted: "missing"},
		"Labelled": {
			reason: "The Secret may lack the backup's label.", item: reads("password"), noted: "exists",
			spec: velerov1.BackupSpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
		},
		"LabelledAndTaken": {
			reason: "The setting takes the Secret whatever its labels.", item: reads("password"), config: include, want: password, noted: "exists stored",
			spec: velerov1.BackupSpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
		},
		"Local": {
			reason: "A namespaced MR reads Secrets in its own namespace.", noted: "exists stored",
			item: xptest.NamespacedMR("db", xptest.Field(map[string]any{"name": "own", "key": "p"}, "spec", "forProvider", "passwordSecretRef")),
		},
		"API": {
			reason: "An unreadable setting equals no setting.", item: reads("password"), spec: teamA, down: true,
			left: []string{
				without, "ManagedResourceDefinition Bucket: ManagedResourceDefinition Bucket can't be read: " + errAPI.Error(),
				"the setting provider-credentials: the setting provider-credentials can't be read: " + errAPI.Error(), "Secret infra/password: Secret infra/password can't be read: ",
			},
		},
		"NotManaged": {
			reason: "Only an MR has a provider that reads Secrets.", spec: teamA,
			item: xptest.Object("m.example.org/v1", "Thing", "", "t", xptest.JSON(`{"spec":{"forProvider":{"aSecretRef":{"namespace":"infra","name":"password"}}}}`)),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := clusterOf(xptest.Secret("password", xptest.In("infra")), xptest.Object("v1", "Namespace", "", "infra"),
				xptest.Object("v1", "ConfigMap", "", "p", xptest.JSON(`{"data":{"p":"version: v1\nnamespacedFilterPolicies: [{namespaces: [infra], resourceFilters: [{kinds: [pods]}]}]"}}`)),
				xptest.Secret("own"), xptest.Secret("locked", xptest.In("infra"), xptest.Labelled("velero.io/exclude-from-backup", "true")))
			c.settings, c.down = tc.config, tc.down
			got := backUp(c, tc.item, &velerov1.Backup{Spec: tc.spec})
			if diff := cmp.Diff(tc.want, got.Items, cmpopts.EquateEmpty()); got.Stored == nil || got.Err != nil || diff != "" {
				t.Errorf("%s\nerror %v, -want, +got:\n%s", tc.reason, got.Err, diff)
			}
			if !slices.EqualFunc(tc.left, got.Left, func(want, got string) bool { return strings.HasPrefix(got, want) }) {
				t.Errorf("%s\nwarned of %q, want %q", tc.reason, got.Left, tc.left)
			}
			if noted := notedInputs(got.Stored); noted != tc.noted {
				t.Errorf("%s\nnoted %q, want %q", tc.reason, noted, tc.noted)
			}
			if _, beyond := got.Stored.GetAnnotations()[xp.AnnotationMustInclude]; beyond != (len(tc.want) > 0 && len(tc.spec.IncludedNamespaces) > 0) {
				t.Errorf("%s\nbeyond the filters: %v", tc.reason, beyond)
			}
			c.checkCost(t)
		})
	}
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
	teamA, web := velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}, velerov1.BackupSpec{IncludedNamespaces: []string{"web"}}
	const left = "Secret web/" + name + "3: Helm keeps its release there, and without it provider-helm installs the chart again " +
		"over what is there, with new passwords where the chart makes some. Add web to --include-namespaces"
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		config map[string]string
		spec   velerov1.BackupSpec
		want   []velero.ResourceIdentifier
		left   string
		noted  string
	}{
		"Here":         {reason: "The backup has the release's Secret with its namespace.", item: release(), spec: web, noted: "exists stored"},
		"Elsewhere":    {reason: "The plugin names the Secret that the backup lacks.", item: release(), spec: teamA, left: left + ", or set provider-credentials to include", noted: "exists"},
		"NoSecrets":    {reason: "The plugin names a Secret that a resource filter leaves out.", item: release(), spec: velerov1.BackupSpec{ExcludedResources: []string{"secrets"}}, left: strings.Replace(left, "Add web to --include-namespaces", "Have the filters of the backup include it", 1) + ", or set provider-credentials to include", noted: "exists"},
		"OtherCluster": {reason: "The release is in another cluster, so this one has no Secret.", item: release(xptest.Annotated(xp.AnnotationExternalName, "b")), spec: teamA, noted: "missing"},
		"Included": {
			reason: "The setting includes such Secrets, also of older revisions, except excluded ones.", item: release(), config: include, spec: teamA, noted: "exists stored",
			want: []velero.ResourceIdentifier{id("", "secrets", "web", name+"3"), id("", "secrets", "web", name+"1")},
		},
		"OtherClusterIncluded": {reason: "The release is in another cluster, so the backup misses nothing.", item: release(xptest.Annotated(xp.AnnotationExternalName, "b")), config: include, spec: teamA, noted: "missing"},
		"Tenant":               {reason: "A tenant can name any release, so its Secret stays out.", item: local("web"), config: include, spec: teamA, left: left, noted: "exists"},
		"TenantsOwn":           {reason: "The release is in the tenant's own namespace.", item: local("team-a"), spec: teamA, noted: "exists stored"},
	}
	for test, tc := range cases {
		t.Run(test, func(t *testing.T) {
			c := clusterOf(xptest.Secret(name+"3", xptest.In("web")), xptest.Secret(name+"2", xptest.In("web"), xptest.Labelled(excludeLabel, "true")),
				xptest.Secret(name+"1", xptest.In("web")), xptest.Secret(name+"3", xptest.In("team-a")), xptest.Object("v1", "Namespace", "", "web"))
			c.settings = tc.config
			log, hook := logtest.NewNullLogger()
			stored, items, _, _, err := NewTree(NewResolver(c), log).Execute(tc.item, &velerov1.Backup{Spec: tc.spec})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, items, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			var warnings []string
			for _, e := range hook.AllEntries() {
				if ref, _ := e.Data["reference"].(string); strings.HasPrefix(ref, "Secret ") {
					warnings = append(warnings, fmt.Sprint(ref, ": ", e.Data["cause"]))
				}
			}
			if got := strings.Join(warnings, "; "); got != tc.left {
				t.Errorf("%s\nwarned of %q, want %q", tc.reason, got, tc.left)
			}
			if u, _ := stored.(*unstructured.Unstructured); notedInputs(u) != tc.noted {
				t.Errorf("%s\nnoted %q, want %q", tc.reason, notedInputs(u), tc.noted)
			}
		})
	}
}

// Each MR can read a Secret in another namespace, and the cache of lists is small.
func TestInputSecretsOfManyNamespacesAreReadAtOnce(t *testing.T) {
	const many = 100
	c := clusterOf()
	for n := range many {
		s := xptest.Secret("s", xptest.In(fmt.Sprint("n", n)))
		c.objects[xp.RefTo(s).ID()] = s
	}
	log, _ := logtest.NewNullLogger()
	tree := NewTree(NewResolver(c), log)
	for range 2 {
		for n := range many {
			mr := xptest.MR("db", xptest.Field(map[string]any{"namespace": fmt.Sprint("n", n), "name": "s"}, "spec", "forProvider", "passwordSecretRef"))
			stored, _, _, _, err := tree.Execute(mr, &velerov1.Backup{})
			if u, _ := stored.(*unstructured.Unstructured); err != nil || notedInputs(u) != "exists stored" {
				t.Fatalf("got %v, error %v", stored, err)
			}
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
	log, hook := logtest.NewNullLogger()
	tree := NewTree(NewResolver(c), log)
	for _, name := range []string{"a", "b", "a"} {
		mr := xptest.MR("db-"+name, xptest.Field(map[string]any{"namespace": "infra", "name": name}, "spec", "forProvider", "passwordSecretRef"))
		if _, items, _, _, err := tree.Execute(mr, &velerov1.Backup{}); err != nil || len(items) != 1 {
			t.Errorf("got %v, error %v", items, err)
		}
	}
	if len(c.lists) != 1 || len(hook.AllEntries()) > 0 {
		t.Errorf("listed %v, warned %v", c.lists, hook.AllEntries())
	}
}
