package backupitem

import (
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Only the ProviderConfig names the Secret with the state of a Workspace. Nothing in that Secret
// shows which Workspace it belongs to but the name, which a tenant chooses.
func TestTreeTakesStatesOfWorkspaces(t *testing.T) {
	const state = "tfstate-net-s"
	config := func(apiVersion, kind, namespace string) *unstructured.Unstructured {
		return xptest.Object(apiVersion, kind, namespace, "default", xptest.Field("terraform {\n backend \"kubernetes\" {\n secret_suffix = \"s\"\n namespace = \"infra\"\n }\n}", "spec", "configuration"))
	}
	workspace := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.With(xptest.Object("tf.upbound.io/v1beta1", "Workspace", "", "net", xptest.Field(map[string]any{"module": ""}, "spec", "forProvider"),
			xptest.Annotated(xp.AnnotationExternalName, "net"), xptest.Field("default", "spec", "providerConfigRef", "name")), o...)
	}
	local := workspace(xptest.Field("tf.m.upbound.io/v1beta1", "apiVersion"), xptest.In("team-a"), xptest.Field("ClusterProviderConfig", "spec", "providerConfigRef", "kind"))
	include := map[string]string{"provider-credentials": "include"}
	teamA, infra := velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}, velerov1.BackupSpec{IncludedNamespaces: []string{"infra"}}
	const left = "Secret infra/" + state + " [InputMissing]"
	runTakes(t, map[string]takeCase{
		"Here":         {reason: "The backup has the state with its namespace.", item: workspace(), spec: infra, noted: "exists stored"},
		"Elsewhere":    {reason: "The plugin names the state that the backup lacks.", item: workspace(), spec: teamA, left: []string{left}, noted: "exists"},
		"Included":     {reason: "The setting includes such Secrets.", item: workspace(), config: include, spec: teamA, noted: "exists stored", beyond: true, want: []velero.ResourceIdentifier{id("", "secrets", "infra", state)}},
		"OtherCluster": {reason: "The state is in another cluster, so this one has no Secret.", item: workspace(xptest.Annotated(xp.AnnotationExternalName, "x")), spec: teamA, noted: "missing"},
		"NoConfig":     {reason: "Without its ProviderConfig nothing is known of the state.", item: workspace(xptest.Without("spec", "providerConfigRef")), spec: teamA},
		"Tenant":       {reason: "A tenant can name any state, so its Secret stays out.", item: local, config: include, spec: teamA, left: []string{left}, noted: "exists"},
	}, xptest.Secret(state, xptest.In("infra")), xptest.Object("v1", "Namespace", "", "infra"),
		config("tf.upbound.io/v1beta1", "ProviderConfig", ""), config("tf.m.upbound.io/v1beta1", "ClusterProviderConfig", ""))
}
