package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// backend is the example of provider-terraform.
const backend = `
provider "google" {
  credentials = "gcp-credentials.json"
}

// Modules _must_ use remote state. The provider does not persist state.
terraform {
  backend "kubernetes" {
    labels = { team = "a" }
    secret_suffix     = "providerconfig-default"
    namespace         = "upbound-system"
    in_cluster_config = true
  }
}
`

func TestWorkspaceSecret(t *testing.T) {
	workspace := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.With(xptest.Object("tf.upbound.io/v1beta1", "Workspace", "", "net", xptest.Field(`output "x" { value = 1 }`, "spec", "forProvider", "module")), o...)
	}
	config := func(code string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.With(xptest.Object("tf.upbound.io/v1beta1", "ProviderConfig", "", "default", xptest.Field(code, "spec", "configuration")), o...)
	}
	file := func(text string) xptest.Option { return xptest.Field(text, "spec", "backendFile") }
	const partial = "terraform {\n  backend \"kubernetes\" {}\n}\n"
	cases := map[string]struct {
		reason     string
		of, config *unstructured.Unstructured
		want       string
	}{
		"Configured": {reason: "The ProviderConfig names suffix and namespace.", of: workspace(), config: config(backend), want: "upbound-system/tfstate-net-providerconfig-default"},
		"Named": {
			reason: "Terraform's workspace has the external-name.", of: workspace(xptest.Annotated(xp.AnnotationExternalName, "n")), config: config(backend),
			want: "upbound-system/tfstate-n-providerconfig-default",
		},
		"Namespaced": {
			reason: "The state is where the backend says, also of a namespaced Workspace.", config: config(backend), want: "upbound-system/tfstate-net-providerconfig-default",
			of: workspace(xptest.Field("tf.m.upbound.io/v1beta1", "apiVersion"), xptest.In("team-a")),
		},
		"Default": {reason: "Terraform's default namespace applies.", of: workspace(), config: config("terraform { backend \"kubernetes\" {\nsecret_suffix = \"s\"\n} }"), want: "default/tfstate-net-s"},
		"OneLine": {reason: "A block with one setting can be one line.", of: workspace(), config: config(`terraform { backend "kubernetes" { secret_suffix = "s" } }`), want: "default/tfstate-net-s"},
		"File": {
			reason: "A backend file has what the code leaves open.", of: workspace(), config: config(partial, file("secret_suffix = \"s\"\nnamespace = \"infra\"\n")),
			want: "infra/tfstate-net-s",
		},
		"FileFirst": {reason: "A backend file overrides the code.", of: workspace(), config: config(backend, file(`namespace = "infra"`)), want: "infra/tfstate-net-providerconfig-default"},
		"Module":    {reason: "The module can have the backend.", of: workspace(xptest.Field(backend, "spec", "forProvider", "module")), want: "upbound-system/tfstate-net-providerconfig-default"},
		"Comment":   {reason: "A comment sets nothing.", of: workspace(), config: config("# backend \"kubernetes\" {\n  secret_suffix = \"s\"\n#}")},
		"Elsewhere": {
			reason: "Settings of other blocks don't count.", of: workspace(),
			config: config("terraform {\n backend \"kubernetes\" {\n }\n}\nresource \"x\" \"y\" {\n secret_suffix = \"s\"\n}"),
		},
		"Bucket":    {reason: "The state is in a bucket.", of: workspace(), config: config("terraform {\n backend \"s3\" {\n bucket = \"b\"\n }\n}")},
		"Unclosed":  {reason: "Terraform refuses such code, and nothing is read beyond it.", of: workspace(), config: config("terraform {\n backend \"kubernetes\" {\n secret_suffix = \"s\"\n"), want: "default/tfstate-net-s"},
		"Path":      {reason: "No Secret can have such a name.", of: workspace(), config: config("terraform {\n backend \"kubernetes\" {\n secret_suffix = \"../x\"\n }\n}")},
		"Observes":  {reason: "An observing Workspace creates nothing.", of: workspace(xptest.Field([]any{"Observe"}, "spec", "managementPolicies")), config: config(backend)},
		"NoConfig":  {reason: "Without a ProviderConfig nothing is known.", of: workspace()},
		"Malformed": {reason: "A configuration of another type names nothing.", of: workspace(), config: config("", xptest.Field(int64(1), "spec", "configuration"))},
		"Other":     {reason: "A kind of the same name in another group is no Workspace.", of: workspace(xptest.Field("example.org/v1", "apiVersion")), config: config(backend)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, ok := xp.WorkspaceSecret(tc.of, tc.config)
			if ok != (tc.want != "") || ok && r.Path() != tc.want {
				t.Errorf("%s\ngot %v, %v, want %q", tc.reason, r, ok, tc.want)
			}
			if ok && !xp.IsStateSecret(r.Name) {
				t.Errorf("%s is not recognised as a state", r)
			}
		})
	}
}

// Only the note of a backup shows a restore where the state of a Workspace is. A writer to the
// bucket can write into the note what it likes.
func TestInputSecretsOfWorkspaces(t *testing.T) {
	secret := func(namespace, name string) xp.Input {
		return xp.Input{Ref: xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}, Exists: true}
	}
	cases := map[string]struct {
		reason string
		of     *unstructured.Unstructured
		noted  []xp.Input
		want   []string
	}{
		"Noted":    {reason: "The backup has noted the state.", of: xptest.Object("tf.upbound.io/v1beta1", "Workspace", "", "net"), noted: []xp.Input{secret("infra", "tfstate-net-s")}, want: []string{"infra/tfstate-net-s"}},
		"Others":   {reason: "Nothing but its own state counts.", of: xptest.Object("tf.upbound.io/v1beta1", "Workspace", "", "net"), noted: []xp.Input{secret("infra", "tfstate-db-s"), secret("infra", "password"), secret("", "tfstate-net-s")}},
		"OtherMR":  {reason: "Another MR has no such state.", of: xptest.MR("net"), noted: []xp.Input{secret("infra", "tfstate-net-s")}},
		"Unnoted":  {reason: "A backup without the plugin has no note.", of: xptest.Object("tf.upbound.io/v1beta1", "Workspace", "", "net")},
		"Observes": {reason: "An observing Workspace creates nothing.", of: xptest.Object("tf.upbound.io/v1beta1", "Workspace", "", "net", xptest.Field([]any{"Observe"}, "spec", "managementPolicies")), noted: []xp.Input{secret("infra", "tfstate-net-s")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xp.SetInputs(tc.of, tc.noted)
			var got []string
			for _, r := range xp.InputSecrets(tc.of) {
				got = append(got, r.Path())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
