package backupitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func configured(ref any) xptest.Option { return xptest.Field(ref, "spec", "providerConfigRef") }

func TestTreeOfAProviderConfig(t *testing.T) {
	byName := configured(map[string]any{"name": "default"})
	in := func(group string) xptest.Option { return xptest.JSON(`{"apiVersion":"` + group + `/v1"}`) }
	config := func(group, kind, namespace string) *unstructured.Unstructured {
		return xptest.Object(group+"/v1beta1", kind, namespace, "default")
	}
	own, family := config("cloud.example.org", "ProviderConfig", ""), config("example.org", "ProviderConfig", "")
	local, shared := config("m.example.org", "ProviderConfig", "team-a"), config("m.example.org", "ClusterProviderConfig", "")
	found := func(group, resource, namespace string) result {
		items := []velero.ResourceIdentifier{id(group, resource, namespace, "default")}

		return result{Items: items, Before: items}
	}
	runTrees(t, map[string]treeCase{
		"Own": {
			reason: "The MR's own group has the ProviderConfig, which must come before the MR.", cluster: clusterOf(own, family), item: xptest.MR("b", byName),
			want: found("cloud.example.org", "providerconfigs", ""),
		},
		"Family": {
			reason: "A family of providers has its ProviderConfig in the shared group.", cluster: clusterOf(family), item: xptest.MR("b", byName, in("s3.aws.example.org")),
			want: found("example.org", "providerconfigs", ""),
		},
		"OwnIsMissing": {
			reason: "A kind of that name in another group may belong to another provider.", cluster: clusterOf(family), item: xptest.MR("b", byName),
			want: found("example.org", "providerconfigs", ""),
		},
		"Namespaced": {
			reason: "Crossplane v2 has namespaced ProviderConfigs.", cluster: clusterOf(local),
			item: xptest.NamespacedMR("b", in("s3.m.example.org"), configured(map[string]any{"name": "default", "kind": "ProviderConfig"})),
			want: found("m.example.org", "providerconfigs", "team-a"),
		},
		"Cluster": {
			reason: "Crossplane v2 has cluster-scoped ClusterProviderConfigs.", cluster: clusterOf(local, shared),
			item: xptest.NamespacedMR("b", in("s3.m.example.org"), configured(map[string]any{"name": "default", "kind": "ClusterProviderConfig"})),
			want: found("m.example.org", "clusterproviderconfigs", ""),
		},
		"Elsewhere": {
			reason: "An MR must not bring the ProviderConfig of another namespace.", cluster: clusterOf(config("m.example.org", "ProviderConfig", "team-b")),
			item: xptest.NamespacedMR("b", in("s3.m.example.org"), configured(map[string]any{"name": "default", "kind": "ProviderConfig", "namespace": "team-b"})),
		},
		"AnyKind": {
			reason: "An MR could name any served kind, so the plugin follows ProviderConfigs only.", cluster: clusterOf(xptest.MR("default")),
			item: xptest.NamespacedMR("b", configured(map[string]any{"name": "default", "kind": "Bucket"})),
		},
		"Missing":   {reason: "The cluster may lack the ProviderConfig.", cluster: clusterOf(), item: xptest.MR("b", byName)},
		"Malformed": {reason: "A string is no reference.", cluster: clusterOf(own), item: xptest.MR("b", configured("default"))},
		"API": {
			reason: "An unreadable ProviderConfig stays out of the backup, but its MR does not.", cluster: clusterOf(own).without(own), item: xptest.MR("b", byName),
			want: result{Left: []string{unread("ProviderConfig default")}},
		},
		"KeptOut": {
			reason: "A ProviderConfig that a user excludes from backups stays out.", item: xptest.MR("b", byName),
			cluster: clusterOf(xptest.With(own, xptest.Labelled("velero.io/exclude-from-backup", "true"))),
			want: result{Left: []string{
				"ProviderConfig default [ExcludedByLabel]",
			}},
		},
	})
	c := clusterOf(own)
	c.down = true
	got := backUp(t, c, xptest.MR("b", byName), &velerov1.Backup{})
	want := []string{
		unread("ManagedResourceDefinition Bucket"), unread("ProviderConfig default"),
	}
	if diff := cmp.Diff(want, got.Left); got.Stored == nil || diff != "" {
		t.Errorf("the log must name unreadable groups: -want, +got:\n%s", diff)
	}
}

// The MRs of a backup share their ProviderConfigs, so these are in none of their blocks.
func TestBlockLeavesProviderConfigsOut(t *testing.T) {
	config := xptest.Object("cloud.example.org/v1beta1", "ProviderConfig", "", "default")
	if items := newSession(t, clusterOf(config)).related(xptest.MR("b", configured(map[string]any{"name": "default"}))); len(items) > 0 {
		t.Errorf("got %v", items)
	}
}

func TestTreeTakesCredentialsAsTheSettingsSay(t *testing.T) {
	config := func(namespace, credentials string) *unstructured.Unstructured {
		return xptest.Object("m.example.org/v1", "ProviderConfig", namespace, "default", xptest.JSON(`{"spec":{"credentials":`+credentials+`}}`))
	}
	const named = `{"source":"Secret","secretRef":{"namespace":"infra","name":"creds","key":"k"}}`
	include, exclude := map[string]string{"provider-credentials": "include"}, map[string]string{"velero.crossplane.io/provider-credentials": "exclude"}
	teamA := velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}, ExcludedClusterScopedResources: []string{contents}}
	some := velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}, IncludedResources: []string{"*"}}
	but := velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}, ExcludedNamespaces: []string{"infra"}}
	const left = "secrets infra/creds [ExcludedByFilter]"
	secret := func(namespace string) []velero.ResourceIdentifier {
		return []velero.ResourceIdentifier{id("", "secrets", namespace, "creds")}
	}
	runTakes(t, map[string]takeCase{
		"Default":   {reason: "By default a backup has no credentials.", item: config("", named)},
		"Included":  {reason: "The cluster's setting includes credentials.", item: config("", named), config: include, want: secret("infra")},
		"Annotated": {reason: "An annotation on the Backup overrides the cluster's setting.", item: config("", named), config: include, annotations: exclude},
		"Own": {
			reason: "A namespaced ProviderConfig has credentials only in its own namespace.",
			item:   config("team-a", named), config: include, want: secret("team-a"),
		},
		"Others": {
			reason: "A provider can have other fields there.", item: config("", `{"secretRef":{"namespace":"infra","name":"creds","keys":["a"]}}`), config: include,
			want: secret("infra"),
		},
		"Nowhere": {reason: "A cluster-scoped ProviderConfig must name the Secret's namespace.", item: config("", `{"secretRef":{"name":"creds"}}`), config: include},
		"Unknown": {
			reason: "The plugin must not ignore an unknown setting.", item: config("", named), config: map[string]string{"credentials": "include"},
			left: []string{"the setting provider-credentials [SettingUnknown]"},
		},
		"API": {
			reason: "The plugin must not ignore an unreadable setting.", item: config("", named), down: true,
			left: []string{"the setting provider-credentials [SettingsNotRead]"},
		},
		"UnknownAndUnused": {
			reason: "An unknown setting does not matter without a Secret.", item: config("", `{"source":"InjectedIdentity"}`), config: map[string]string{"credentials": "include"},
		},
		"NotThere": {
			reason: "The plugin names a missing Secret.", item: config("elsewhere", named), config: include, left: []string{"Secret elsewhere/creds: it does not exist [NotLinked]"},
		},
		"KeptOut": {
			reason: "Credentials that a user excludes from backups stay out.", item: config("locked", named), config: include,
			left: []string{"Secret locked/creds [ExcludedByLabel]"},
		},
		"Other": {
			reason: "Only a ProviderConfig has credentials.",
			item:   xptest.Object("m.example.org/v1", "Thing", "", "t", xptest.JSON(`{"spec":{"credentials":`+named+`}}`)), config: include,
		},
		"Elsewhere": {
			reason: "Velero must look beyond its filters.", item: config("", named), spec: teamA, annotations: map[string]string{"velero.crossplane.io/provider-credentials": "include"},
			want: secret("infra"), beyond: true,
		},
		"SomeResources": {reason: "A user who selects resources also decides which ones stay out.", item: config("", named), spec: some, config: include, left: []string{left}},
		"Excluded":      {reason: "A user who excludes the namespace also excludes its credentials.", item: config("", named), spec: but, config: include, left: []string{left}},
	}, xptest.Secret("creds", xptest.In("infra")), xptest.Secret("creds", xptest.In("team-a")),
		xptest.Secret("creds", xptest.In("locked"), xptest.Labelled("velero.io/exclude-from-backup", "true")))
}

func TestTreeReadsTheSettingsOnce(t *testing.T) {
	c := clusterOf()
	s := newSession(t, c)
	item := xptest.Object("m.example.org/v1", "ProviderConfig", "", "default", xptest.JSON(`{"spec":{"credentials":{"secretRef":{"namespace":"n","name":"s"}}}}`))
	for range 3 {
		s.take(item, &velerov1.Backup{})
		s.take(xptest.MR("b"), &velerov1.Backup{})
	}
	if c.settled != 1 {
		t.Errorf("read %d times", c.settled)
	}
	c = clusterOf()
	c.down = true
	s = newSession(t, c)
	for range 3 {
		s.take(item, &velerov1.Backup{})
	}
	if c.settled != 1 {
		t.Errorf("the plugin must wait for a failure once; read %d times", c.settled)
	}
}
