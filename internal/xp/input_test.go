package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func paths(refs []xp.Ref) (all []string) {
	for _, r := range refs {
		all = append(all, r.Path())
	}

	return all
}

func TestInputSecrets(t *testing.T) {
	xptest.Run(t, map[string]xptest.Row[string, []string]{
		"Initial": {Reason: "A reference can be in initProvider only.", In: `{"initProvider":{"passwordSecretRef":{"namespace":"infra","name":"db"}}}`, Want: []string{"infra/db"}},
		"Deep": {
			Reason: "A reference can be at any depth and in lists.",
			In: `{"forProvider":{"auth":[{"tls":{"caSecretRef":{"namespace":"b","name":"ca"}}}],"pullSecretRefs":[{"namespace":"a","name":"1"},{"namespace":"a","name":"2"}],` +
				`"valuesFrom":[{"secretKeyRef":{"namespace":"c","name":"v"}}]}}`,
			Want: []string{"a/1", "a/2", "b/ca", "c/v"},
		},
		"Published": {Reason: "The published Secret is no input.", In: `{"writeConnectionSecretToRef":{"namespace":"infra","name":"db"},"forProvider":{}}`},
		"Manifest":  {Reason: "provider-kubernetes manages the manifest and does not read it.", In: `{"forProvider":{"manifest":{"spec":{"secretRef":{"namespace":"a","name":"b"}}}}}`},
		"Malformed": {
			Reason: "A reference to an impossible name is no input.",
			In:     `{"forProvider":{"aSecretRef":"x","bSecretRef":{"name":"b"},"cSecretRef":{"namespace":"a"},"dSecretRef":{"namespace":"a","name":"../b/c"},"eSecretRef":[1]}}`,
		},
	}, func(in string) []string {
		return paths(xp.InputSecrets(xptest.MR("b", xptest.JSON(`{"spec":`+in+`}`))))
	})
	local := xptest.NamespacedMR("b", xptest.JSON(`{"spec":{"forProvider":{"aSecretRef":{"name":"db"},"bSecretRef":{"namespace":"team-a","name":"b"},`+
		`"cSecretRef":{"namespace":"infra","name":"c"}}}}`))
	if diff := cmp.Diff([]string{"team-a/b", "team-a/db"}, paths(xp.InputSecrets(local))); diff != "" {
		t.Errorf("a namespaced MR reads Secrets of its own namespace: -want, +got:\n%s", diff)
	}
}

// Any writer to the bucket can write the note. So it can hold anything, and it counts for Secrets
// that the MR names only.
func TestInputs(t *testing.T) {
	secret := func(name string) xp.Ref {
		return xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "infra", Name: name}
	}
	mr := xptest.MR("b")
	xp.SetInputs(mr, []xp.Input{{Ref: secret("a"), Exists: true, Stored: true}, {Ref: secret("b"), Exists: true}, {Ref: secret("c")}})
	for _, want := range []xp.Input{{Ref: secret("a"), Exists: true, Stored: true}, {Ref: secret("b"), Exists: true}, {Ref: secret("c")}} {
		if got, ok := xp.Inputs(mr)[want.Ref]; !ok || got != want {
			t.Errorf("got %+v, %v, want %+v", got, ok, want)
		}
	}
	if got, ok := xp.Inputs(mr)[secret("d")]; ok {
		t.Errorf("got %+v for a Secret that is not recorded", got)
	}
	for _, forged := range []any{"x", []any{"x", int64(1), map[string]any{"namespace": int64(1), "name": []any{}, "exists": "yes"}}, map[string]any{}} {
		if got, ok := xp.Inputs(xptest.MR("b", xptest.Field(forged, "metadata", xp.FieldInputs)))[secret("a")]; ok {
			t.Errorf("got %+v from %v", got, forged)
		}
	}
	if !xp.HasBackupMetadata(mr) {
		t.Error("the inputs must count as backup metadata")
	}
	xp.StripBackupMetadata(mr)
	if xp.HasBackupMetadata(mr) {
		t.Error("the strip must remove the inputs too")
	}
	xp.SetInputs(mr, nil)
	if xp.HasBackupMetadata(mr) {
		t.Error("an empty list must write no field")
	}
}

func TestReleaseSecret(t *testing.T) {
	cluster := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.With(xptest.Object("helm.crossplane.io/v1beta1", "Release", "", "shop", xptest.Field("web", "spec", "forProvider", "namespace"),
			xptest.Field(int64(3), "status", "atProvider", "revision")), o...)
	}
	local := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.With(xptest.Object("helm.m.crossplane.io/v1beta1", "Release", "team-a", "shop", xptest.Field(int64(1), "status", "atProvider", "revision")), o...)
	}
	cases := map[string]struct {
		reason string
		of     *unstructured.Unstructured
		want   string
	}{
		"Named":     {reason: "The external-name is the name of the release.", of: cluster(xptest.Annotated(xp.AnnotationExternalName, "s")), want: "web/sh.helm.release.v1.s.v3"},
		"Local":     {reason: "A namespaced Release installs in its own namespace by default.", of: local(), want: "team-a/sh.helm.release.v1.shop.v1"},
		"Elsewhere": {reason: "A namespaced Release can name another namespace.", of: local(xptest.Field("web", "spec", "forProvider", "namespace")), want: "web/sh.helm.release.v1.shop.v1"},
		"Failed":    {reason: "A release whose last upgrade failed still exists.", of: cluster(xptest.Field("failed", "status", "atProvider", "state")), want: "web/sh.helm.release.v1.shop.v3"},
		"Malformed": {reason: "A malformed revision number names no Secret.", of: cluster(xptest.Field("3", "status", "atProvider", "revision"))},
		"Path":      {reason: "No Secret can have such a name.", of: cluster(xptest.Annotated(xp.AnnotationExternalName, "../x"))},
		"Other":     {reason: "A kind of the same name in another group is no Release.", of: xptest.With(cluster(), xptest.Field("example.org/v1", "apiVersion"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, ok := xp.ReleaseSecret(tc.of)
			if ok != (tc.want != "") || ok && r.Path() != tc.want {
				t.Errorf("%s\ngot %v, %v, want %q", tc.reason, r, ok, tc.want)
			}
			if ok && !xp.IsReleaseSecret(r.Name) {
				t.Errorf("%s is not recognised as a release Secret", r)
			}
			if inputs := paths(xp.InputSecrets(tc.of)); tc.want != "" && !cmp.Equal([]string{tc.want}, inputs) {
				t.Errorf("%s\nits provider reads %q", tc.reason, inputs)
			}
		})
	}
	if diff := cmp.Diff([]string{"web/sh.helm.release.v1.shop.v2", "web/sh.helm.release.v1.shop.v1"}, paths(xp.RevisionSecrets(cluster()))); diff != "" {
		t.Errorf("the older revisions that the provider can roll back to: -want, +got:\n%s", diff)
	}
	if many := xp.RevisionSecrets(cluster(xptest.Field(int64(1<<40), "status", "atProvider", "revision"))); len(many) != 19 {
		t.Errorf("a revision can be any number, and the list must stay short: %d", len(many))
	}
}

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
		"Named": {
			reason: "Terraform's workspace has the external-name.", of: workspace(xptest.Annotated(xp.AnnotationExternalName, "n")), config: config(backend),
			want: "upbound-system/tfstate-n-providerconfig-default",
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
		"Bucket":   {reason: "The state is in a bucket.", of: workspace(), config: config("terraform {\n backend \"s3\" {\n bucket = \"b\"\n }\n}")},
		"Unclosed": {reason: "Terraform refuses such code, and nothing is read beyond it.", of: workspace(), config: config("terraform {\n backend \"kubernetes\" {\n secret_suffix = \"s\"\n"), want: "default/tfstate-net-s"},
		"Path":     {reason: "No Secret can have such a name.", of: workspace(), config: config("terraform {\n backend \"kubernetes\" {\n secret_suffix = \"../x\"\n }\n}")},
		"Observes": {reason: "An observing Workspace creates nothing.", of: workspace(xptest.Field([]any{"Observe"}, "spec", "managementPolicies")), config: config(backend)},
		"NoConfig": {reason: "Without a ProviderConfig nothing is known.", of: workspace()},
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
		"Noted":   {reason: "The backup has noted the state.", of: xptest.Object("tf.upbound.io/v1beta1", "Workspace", "", "net"), noted: []xp.Input{secret("infra", "tfstate-net-s")}, want: []string{"infra/tfstate-net-s"}},
		"Others":  {reason: "Nothing but its own state counts.", of: xptest.Object("tf.upbound.io/v1beta1", "Workspace", "", "net"), noted: []xp.Input{secret("infra", "tfstate-db-s"), secret("infra", "password"), secret("", "tfstate-net-s")}},
		"OtherMR": {reason: "Another MR has no such state.", of: xptest.MR("net"), noted: []xp.Input{secret("infra", "tfstate-net-s")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xp.SetInputs(tc.of, tc.noted)
			if diff := cmp.Diff(tc.want, paths(xp.InputSecrets(tc.of))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
