package diagnosis

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestRights(t *testing.T) {
	const then, now, fixed = "helm-0123456789ab", "helm-ba9876543210", "helm"
	gives := func(binding, role, account string) *unstructured.Unstructured {
		namespace, name, _ := strings.Cut(binding, "/")
		kind := "RoleBinding"
		if name == "" {
			kind, namespace, name = "ClusterRoleBinding", "", namespace
		}

		return xptest.Object("rbac.authorization.k8s.io/v1", kind, namespace, name, xptest.JSON(`{"roleRef":{"kind":"ClusterRole","name":"`+role+`"},"subjects":[`+
			`{"kind":"ServiceAccount","namespace":"crossplane-system","name":"`+account+`"}]}`))
	}
	revision := func(name, state, config string) *unstructured.Unstructured {
		return xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", name, xptest.Labelled(xp.LabelPackage, "helm"), xptest.Field(state, "spec", "desiredState"),
			xptest.Field(config, "spec", "runtimeConfigRef", "name"))
	}
	config := xptest.Object("pkg.crossplane.io/v1beta1", "DeploymentRuntimeConfig", "", "named", xptest.JSON(`{"spec":{"serviceAccountTemplate":{"metadata":{"name":"helm"}}}}`))
	bound, active := gives("helm", "cluster-admin", then), revision(now, "Active", "default")
	made := xptest.With(bound, xptest.ControlledBy(active))
	cases := map[string]struct {
		reason    string
		of        Subject
		namespace string
		objects   []*unstructured.Unstructured
		want      []string
	}{
		"Named":     {reason: "It can be called otherwise elsewhere.", of: Backup, objects: []*unstructured.Unstructured{bound, revision(then, "Active", "")}, want: []string{"warning ClusterRoleBinding helm"}},
		"NamedOnce": {reason: "It is called the same everywhere.", of: Backup, objects: []*unstructured.Unstructured{gives("helm", "cluster-admin", fixed), revision(then, "Active", "named"), config}},
		"NamedOld":  {reason: "It had no rights there either.", of: Backup, objects: []*unstructured.Unstructured{bound, active}},
		"Made":      {reason: "Crossplane makes it again.", of: Backup, objects: []*unstructured.Unstructured{made, revision(then, "Active", "")}},
		"Running":   {reason: "The package has the rights.", of: Cluster, objects: []*unstructured.Unstructured{gives("helm", "cluster-admin", now), active}},
		"Lost": {
			reason: "The package has lost its rights.", of: Cluster, objects: []*unstructured.Unstructured{bound, active, gives("helm-2", "view", now), gives("a/helm", "cluster-admin", now)},
			want: []string{"problem ClusterRoleBinding helm"},
		},
		"LostInNamespace": {
			reason: "Also if it had them in one namespace.", of: Cluster, objects: []*unstructured.Unstructured{gives("a/helm", "edit", then), active},
			want: []string{"problem RoleBinding a/helm"},
		},
		"LostByName": {
			reason: "Now it runs as what a person has named.", of: Cluster, objects: []*unstructured.Unstructured{bound, revision(now, "Active", "named"), config},
			want: []string{"problem ClusterRoleBinding helm"},
		},
		"Upgraded": {
			reason: "An inactive revision does not run.", of: Cluster, objects: []*unstructured.Unstructured{bound, active, revision(then, "Inactive", "")},
			want: []string{"problem ClusterRoleBinding helm"},
		},
		"GivenAgain":   {reason: "What was left behind does no harm.", of: Cluster, objects: []*unstructured.Unstructured{bound, active, gives("helm-2", "cluster-admin", now)}},
		"GivenByName":  {reason: "The same.", of: Cluster, objects: []*unstructured.Unstructured{bound, revision(now, "Active", "named"), config, gives("helm-2", "cluster-admin", fixed)}},
		"NotInstalled": {reason: "Nobody knows whether there was such a package.", of: Cluster, objects: []*unstructured.Unstructured{bound}},
		"NotActive":    {reason: "It has no Pod yet.", of: Cluster, objects: []*unstructured.Unstructured{bound, revision(now, "Inactive", "")}},
		"Elsewhere":    {reason: "Packages run beside Crossplane.", of: Cluster, namespace: "upbound", objects: []*unstructured.Unstructured{bound, active}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Rights{Namespace: tc.namespace}
			for _, u := range tc.objects {
				r.Add(u)
			}
			var got []string
			for _, p := range r.Misplaced(tc.of) {
				got = append(got, string(p.Severity)+" "+p.Object.String())
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRightsSayWhatToDo(t *testing.T) {
	r := &Rights{}
	for _, u := range []*unstructured.Unstructured{
		xptest.Object("rbac.authorization.k8s.io/v1", "RoleBinding", "team-a", "-f", xptest.JSON(`{"roleRef":{"kind":"Role","name":"edit"},"subjects":[`+
			`{"kind":"ServiceAccount","namespace":"crossplane-system","name":"helm-0123456789ab"}]}`)),
		xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "helm-ba9876543210", xptest.Labelled(xp.LabelPackage, "helm"), xptest.Field("Active", "spec", "desiredState")),
	} {
		r.Add(u)
	}
	const want = "it gives the Role edit to ServiceAccount crossplane-system/helm-0123456789ab, which is named after one revision of the package helm; that runs as " +
		"ServiceAccount crossplane-system/helm-ba9876543210 now, to which nothing gives that role"
	const next = "if it needs that: kubectl -n team-a set subject RoleBinding --serviceaccount crossplane-system:helm-ba9876543210 -- -f; "
	got := r.Misplaced(Cluster)
	if len(got) != 1 || got[0].Reason != want || !strings.HasPrefix(got[0].Next, next) {
		t.Errorf("got %+v", got)
	}
}
