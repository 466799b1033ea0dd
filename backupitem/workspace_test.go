package backupitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
	const left = "Secret infra/" + state + ": Terraform keeps its state there, and without it provider-terraform creates all resources of the module again, beside " +
		"those that exist. Add infra to --include-namespaces"
	const orSet = ", or set provider-credentials to include"
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		config map[string]string
		spec   velerov1.BackupSpec
		want   []velero.ResourceIdentifier
		left   string
		noted  string
	}{
		"Here":         {reason: "The backup has the state with its namespace.", item: workspace(), spec: infra, noted: "exists stored"},
		"Elsewhere":    {reason: "The plugin names the state that the backup lacks.", item: workspace(), spec: teamA, left: left + orSet, noted: "exists"},
		"Included":     {reason: "The setting includes such Secrets.", item: workspace(), config: include, spec: teamA, noted: "exists stored", want: []velero.ResourceIdentifier{id("", "secrets", "infra", state)}},
		"OtherCluster": {reason: "The state is in another cluster, so this one has no Secret.", item: workspace(xptest.Annotated(xp.AnnotationExternalName, "x")), spec: teamA, noted: "missing"},
		"NoConfig":     {reason: "Without its ProviderConfig nothing is known of the state.", item: workspace(xptest.Field("gone", "spec", "providerConfigRef", "name")), spec: teamA},
		"Tenant":       {reason: "A tenant can name any state, so its Secret stays out.", item: local, config: include, spec: teamA, left: left, noted: "exists"},
	}
	for test, tc := range cases {
		t.Run(test, func(t *testing.T) {
			c := clusterOf(xptest.Secret(state, xptest.In("infra")), xptest.Object("v1", "Namespace", "", "infra"),
				config("tf.upbound.io/v1beta1", "ProviderConfig", ""), config("tf.m.upbound.io/v1beta1", "ClusterProviderConfig", ""))
			c.settings = tc.config
			got := backUp(c, tc.item, &velerov1.Backup{Spec: tc.spec})
			var secrets []velero.ResourceIdentifier
			for _, i := range got.Items {
				if i.Resource == "secrets" {
					secrets = append(secrets, i)
				}
			}
			if diff := cmp.Diff(tc.want, secrets, cmpopts.EquateEmpty()); got.Err != nil || diff != "" {
				t.Errorf("%s\nerror %v, -want, +got:\n%s", tc.reason, got.Err, diff)
			}
			if left := strings.TrimSuffix(strings.Join(got.Left, "; "), " [InputMissing]"); left != tc.left {
				t.Errorf("%s\nwarned of %q, want %q", tc.reason, left, tc.left)
			}
			if noted := notedInputs(got.Stored); noted != tc.noted {
				t.Errorf("%s\nnoted %q, want %q", tc.reason, noted, tc.noted)
			}
		})
	}
}
