package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestGrantOf(t *testing.T) {
	of := func(kind, namespace, document string) *unstructured.Unstructured {
		return xptest.Object("rbac.authorization.k8s.io/v1", kind, namespace, "b", xptest.JSON(`{"roleRef":{"kind":"ClusterRole","name":"admin"}}`), xptest.JSON(document))
	}
	account := xp.AccountRef("crossplane-system", "p-1")
	type want struct {
		grant           bool
		role, namespace string
		accounts        []string
		gives           bool
	}
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, want]{
		"Everywhere": {
			Reason: "A ClusterRoleBinding applies in all namespaces.",
			In:     of("ClusterRoleBinding", "", `{"subjects":[{"kind":"ServiceAccount","namespace":"crossplane-system","name":"p-1"}]}`),
			Want:   want{grant: true, role: "ClusterRole admin", accounts: []string{"ServiceAccount crossplane-system/p-1"}, gives: true},
		},
		"InNamespace": {
			Reason: "A subject can name the ServiceAccount as a user.",
			In:     of("RoleBinding", "team-a", `{"subjects":[{"kind":"User","name":"system:serviceaccount:crossplane-system:p-1"},{"kind":"User","name":"jane"}]}`),
			Want:   want{grant: true, role: "ClusterRole admin", namespace: "team-a", accounts: []string{"ServiceAccount crossplane-system/p-1"}, gives: true},
		},
		"ToAll": {
			Reason: "All ServiceAccounts of a namespace form a group.",
			In:     of("ClusterRoleBinding", "", `{"subjects":[{"kind":"Group","name":"system:serviceaccounts:crossplane-system"}]}`),
			Want:   want{grant: true, role: "ClusterRole admin", gives: true},
		},
		"ToOthers": {
			Reason: "The binding gives nothing to accounts of other namespaces.", Want: want{grant: true, role: "ClusterRole admin", accounts: []string{"ServiceAccount other/p-1"}},
			In: of("ClusterRoleBinding", "", `{"subjects":[{"kind":"Group","name":"system:serviceaccounts:other"},{"kind":"ServiceAccount","namespace":"other","name":"p-1"}]}`),
		},
		"OfCrossplane": {
			Reason: "Crossplane's RBAC manager creates this binding for the live revision.",
			In:     xptest.With(of("ClusterRoleBinding", "", `{}`), xptest.ControlledBy(xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p-1"))),
		},
		"AnotherGroup": {Reason: "A kind of the same name in another group is no binding.", In: xptest.Object("example.org/v1", "RoleBinding", "team-a", "b")},
	}, func(in *unstructured.Unstructured) want {
		g, ok := xp.GrantOf(in)
		got := want{grant: ok, role: g.Role, namespace: g.Binding.Namespace, gives: g.GivesTo(account)}
		for _, a := range g.Accounts {
			got.accounts = append(got.accounts, a.String())
		}

		return got
	}, cmp.AllowUnexported(want{}))
}

func TestSplitRevisionName(t *testing.T) {
	for name, want := range map[string]string{
		"provider-helm-0123456789ab": "provider-helm", "provider-helm": "", "p-0123456789abc": "", "p-0123456789ax": "", "-0123456789ab": "", "0123456789ab": "", "": "",
	} {
		if got, ok := xp.SplitRevisionName(name); got != want || ok != (want != "") {
			t.Errorf("SplitRevisionName(%q) is %q, %v", name, got, ok)
		}
	}
}

func TestRunsAs(t *testing.T) {
	config := func(name, document string) *unstructured.Unstructured {
		return xptest.Object("pkg.crossplane.io/v1beta1", "DeploymentRuntimeConfig", "", name, xptest.JSON(document))
	}
	configs := []*unstructured.Unstructured{
		config("default", `{}`), config("named", `{"spec":{"serviceAccountTemplate":{"metadata":{"name":"helm"}}}}`),
		config("pod", `{"spec":{"serviceAccountTemplate":{"metadata":{"name":"helm"}},"deploymentTemplate":{"spec":{"template":{"spec":{"serviceAccountName":"own"}}}}}}`),
	}
	for config, want := range map[string]string{"": "p-1", "default": "p-1", "named": "helm", "pod": "own", "gone": "p-1"} {
		revision := xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p-1", xptest.Field(config, "spec", "runtimeConfigRef", "name"))
		if got := xp.RunsAs(revision, configs); got != want {
			t.Errorf("with the config %q it runs as %s, not %s", config, got, want)
		}
	}
}

// managedBy adds an entry of managedFields: the manager, and its fields as JSON.
func managedBy(manager, fields string) xptest.Option {
	return xptest.JSON(`{"metadata":{"managedFields":[{"manager":"` + manager + `","operation":"Update","fieldsType":"FieldsV1","fieldsV1":` + fields + `}]}}`)
}

func TestAddedSettings(t *testing.T) {
	byRevision := xptest.ControlledBy(xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p-1"))
	of := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("v1", "ServiceAccount", "crossplane-system", "p-1", append([]xptest.Option{byRevision}, o...)...)
	}
	const role = "eks.amazonaws.com/role-arn"
	assumes := xptest.Annotated(role, "arn:aws:iam::1:role/crossplane")
	written := `{"f:metadata":{"f:annotations":{".":{},"f:` + role + `":{}},"f:labels":{"f:team":{}}}}`
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, []string]{
		"AsMade":     {Reason: "The package manager created the ServiceAccount without further settings.", In: of(xptest.Labelled("pkg.crossplane.io/provider", "p"))},
		"Annotation": {Reason: "A provider authenticates with the annotation's role.", In: of(assumes), Want: []string{"annotation " + role}},
		"Label": {
			Reason: "Azure finds Pods by labels.", In: of(xptest.Labelled("azure.workload.identity/use", "true")), Want: []string{"label azure.workload.identity/use"},
		},
		"PullSecret": {
			Reason: "The Pod can't pull its image without this Secret.", In: of(xptest.JSON(`{"imagePullSecrets":[{"name":"registry"}]}`)), Want: []string{"imagePullSecret registry"},
		},
		"Secret": {Reason: "A user has added the Secret.", In: of(xptest.JSON(`{"secrets":[{"name":"mine"}]}`)), Want: []string{"secret mine"}},
		"Tokens": {
			Reason: "A control plane creates these Secrets for each ServiceAccount.",
			In:     of(xptest.JSON(`{"secrets":[{"name":"p-1-token-abcde"},{"name":"p-1-dockercfg-abcde"}],"imagePullSecrets":[{"name":"p-1-dockercfg-abcde"}]}`)),
		},
		"Automount": {
			Reason: "The package manager does not set this field.", In: of(xptest.JSON(`{"automountServiceAccountToken":false}`)), Want: []string{"automountServiceAccountToken"},
		},
		"Tools": {
			Reason: "Annotations and labels of kubectl, Velero and Crossplane are no settings.",
			In: of(xptest.Annotated("kubectl.kubernetes.io/last-applied-configuration", "{}"), xptest.Labelled("velero.io/restore-name", "r"),
				xptest.Annotated("internal.crossplane.io/x", "y")),
		},
		"Lookalike": {
			Reason: "Another domain can end with the same letters.", In: of(xptest.Annotated("notcrossplane.io/x", "y")), Want: []string{"annotation notcrossplane.io/x"},
		},
		"ByTemplate": {
			Reason: "Crossplane writes these annotations itself from a DeploymentRuntimeConfig.",
			In:     of(assumes, xptest.Labelled("team", "a"), managedBy("crossplane", written)),
		},
		"ByTemplateInV2": {Reason: "A newer Crossplane writes them under another manager.", In: of(assumes, managedBy("pkg.crossplane.io/runtime", written))},
		"ByPerson":       {Reason: "A user has written the annotation.", In: of(assumes, managedBy("kubectl-annotate", written)), Want: []string{"annotation " + role}},
		"NotOfPackage":   {Reason: "No package creates this ServiceAccount.", In: xptest.Object("v1", "ServiceAccount", "team-a", "s", assumes)},
		"OtherKind":      {Reason: "Providers authenticate with ServiceAccounts only.", In: xptest.Object("v1", "Service", "a", "p-1", byRevision, assumes)},
	}, xp.AddedSettings)
}
