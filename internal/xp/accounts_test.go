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
	cases := map[string]struct {
		reason string
		u      *unstructured.Unstructured
		want   want
	}{
		"Everywhere": {
			reason: "A ClusterRoleBinding applies in all namespaces.",
			u:      of("ClusterRoleBinding", "", `{"subjects":[{"kind":"ServiceAccount","namespace":"crossplane-system","name":"p-1"}]}`),
			want:   want{grant: true, role: "ClusterRole admin", accounts: []string{"ServiceAccount crossplane-system/p-1"}, gives: true},
		},
		"InNamespace": {
			reason: "A subject can name the ServiceAccount as a user.",
			u:      of("RoleBinding", "team-a", `{"subjects":[{"kind":"User","name":"system:serviceaccount:crossplane-system:p-1"},{"kind":"User","name":"jane"}]}`),
			want:   want{grant: true, role: "ClusterRole admin", namespace: "team-a", accounts: []string{"ServiceAccount crossplane-system/p-1"}, gives: true},
		},
		"ToAll": {
			reason: "All ServiceAccounts of a namespace form a group.",
			u:      of("ClusterRoleBinding", "", `{"subjects":[{"kind":"Group","name":"system:serviceaccounts:crossplane-system"}]}`),
			want:   want{grant: true, role: "ClusterRole admin", gives: true},
		},
		"ToOthers": {
			reason: "The binding gives nothing to accounts of other namespaces.", want: want{grant: true, role: "ClusterRole admin", accounts: []string{"ServiceAccount other/p-1"}},
			u: of("ClusterRoleBinding", "", `{"subjects":[{"kind":"Group","name":"system:serviceaccounts:other"},{"kind":"ServiceAccount","namespace":"other","name":"p-1"}]}`),
		},
		"OfCrossplane": {
			reason: "Crossplane's RBAC manager creates this binding for the live revision.",
			u:      xptest.With(of("ClusterRoleBinding", "", `{}`), xptest.ControlledBy(xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p-1"))),
		},
		"Damaged":      {reason: "A damaged binding names no account and no role.", u: of("RoleBinding", "team-a", `{"subjects":["a",{"kind":1}],"roleRef":3}`), want: want{grant: true, role: " ", namespace: "team-a"}},
		"AnotherGroup": {reason: "A kind of the same name in another group is no binding.", u: xptest.Object("example.org/v1", "RoleBinding", "team-a", "b")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, ok := xp.GrantOf(tc.u)
			got := want{grant: ok, role: g.Role, namespace: g.Binding.Namespace, gives: g.GivesTo(account)}
			for _, a := range g.Accounts {
				got.accounts = append(got.accounts, a.String())
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
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
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   []string
	}{
		"AsMade":     {reason: "The package manager created the ServiceAccount without further settings.", object: of(xptest.Labelled("pkg.crossplane.io/provider", "p"))},
		"Annotation": {reason: "A provider authenticates with the annotation's role.", object: of(assumes), want: []string{"annotation " + role}},
		"Label": {
			reason: "Azure finds Pods by labels.", object: of(xptest.Labelled("azure.workload.identity/use", "true")), want: []string{"label azure.workload.identity/use"},
		},
		"PullSecret": {
			reason: "The Pod can't pull its image without this Secret.", object: of(xptest.JSON(`{"imagePullSecrets":[{"name":"registry"}]}`)), want: []string{"imagePullSecret registry"},
		},
		"Secret": {reason: "A user has added the Secret.", object: of(xptest.JSON(`{"secrets":[{"name":"mine"}]}`)), want: []string{"secret mine"}},
		"Tokens": {
			reason: "A control plane creates these Secrets for each ServiceAccount.",
			object: of(xptest.JSON(`{"secrets":[{"name":"p-1-token-abcde"},{"name":"p-1-dockercfg-abcde"}],"imagePullSecrets":[{"name":"p-1-dockercfg-abcde"}]}`)),
		},
		"Automount": {
			reason: "The package manager does not set this field.", object: of(xptest.JSON(`{"automountServiceAccountToken":false}`)), want: []string{"automountServiceAccountToken"},
		},
		"Tools": {
			reason: "Annotations and labels of kubectl, Velero and Crossplane are no settings.",
			object: of(xptest.Annotated("kubectl.kubernetes.io/last-applied-configuration", "{}"), xptest.Labelled("velero.io/restore-name", "r"),
				xptest.Annotated("internal.crossplane.io/x", "y")),
		},
		"Lookalike": {
			reason: "Another domain can end with the same letters.", object: of(xptest.Annotated("notcrossplane.io/x", "y")), want: []string{"annotation notcrossplane.io/x"},
		},
		"ByTemplate": {
			reason: "Crossplane writes these annotations itself from a DeploymentRuntimeConfig.",
			object: of(assumes, xptest.Labelled("team", "a"), managedBy("crossplane", written)),
		},
		"ByTemplateInV2": {reason: "A newer Crossplane writes them under another manager.", object: of(assumes, managedBy("pkg.crossplane.io/runtime", written))},
		"ByPerson":       {reason: "A user has written the annotation.", object: of(assumes, managedBy("kubectl-annotate", written)), want: []string{"annotation " + role}},
		"NotOfPackage":   {reason: "No package creates this ServiceAccount.", object: xptest.Object("v1", "ServiceAccount", "team-a", "s", assumes)},
		"OtherKind":      {reason: "Providers authenticate with ServiceAccounts only.", object: xptest.Object("v1", "Service", "a", "p-1", byRevision, assumes)},
		"Malformed":      {reason: "Malformed fields have no settings.", object: of(xptest.JSON(`{"secrets":"x","imagePullSecrets":[1,{"name":2}],"metadata":{"managedFields":[1]}}`))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, xp.AddedSettings(tc.object)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
