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
		"Named":     {reason: "The package can have another ServiceAccount name in another cluster.", of: Backup, objects: []*unstructured.Unstructured{bound, revision(then, "Active", "")}, want: []string{"warning ClusterRoleBinding helm"}},
		"NamedOnce": {reason: "The ServiceAccount has the same name in every cluster.", of: Backup, objects: []*unstructured.Unstructured{gives("helm", "cluster-admin", fixed), revision(then, "Active", "named"), config}},
		"NamedOld":  {reason: "The package had no such rights at the source.", of: Backup, objects: []*unstructured.Unstructured{bound, active}},
		"Made":      {reason: "Crossplane creates the binding again.", of: Backup, objects: []*unstructured.Unstructured{made, revision(then, "Active", "")}},
		"Running":   {reason: "The package has the rights.", of: Cluster, objects: []*unstructured.Unstructured{gives("helm", "cluster-admin", now), active}},
		"Lost": {
			reason: "The package lacks the rights of its former ServiceAccount.", of: Cluster, objects: []*unstructured.Unstructured{bound, active, gives("helm-2", "view", now), gives("a/helm", "cluster-admin", now)},
			want: []string{"problem ClusterRoleBinding helm"},
		},
		"LostInNamespace": {
			reason: "The package had the rights in one namespace only.", of: Cluster, objects: []*unstructured.Unstructured{gives("a/helm", "edit", then), active},
			want: []string{"problem RoleBinding a/helm"},
		},
		"LostByName": {
			reason: "The package now runs as the ServiceAccount that a user named.", of: Cluster, objects: []*unstructured.Unstructured{bound, revision(now, "Active", "named"), config},
			want: []string{"problem ClusterRoleBinding helm"},
		},
		"Upgraded": {
			reason: "An inactive revision does not use its ServiceAccount.", of: Cluster, objects: []*unstructured.Unstructured{bound, active, revision(then, "Inactive", "")},
			want: []string{"problem ClusterRoleBinding helm"},
		},
		"GivenAgain":   {reason: "The package has its rights again, so the old binding is harmless.", of: Cluster, objects: []*unstructured.Unstructured{bound, active, gives("helm-2", "cluster-admin", now)}},
		"GivenByName":  {reason: "A user gave the named ServiceAccount the rights again.", of: Cluster, objects: []*unstructured.Unstructured{bound, revision(now, "Active", "named"), config, gives("helm-2", "cluster-admin", fixed)}},
		"NotInstalled": {reason: "Without a revision the binding may belong to no package.", of: Cluster, objects: []*unstructured.Unstructured{bound}},
		"NotActive":    {reason: "An inactive revision has no Pod yet.", of: Cluster, objects: []*unstructured.Unstructured{bound, revision(now, "Inactive", "")}},
		"Elsewhere":    {reason: "Packages run in Crossplane's namespace, so the binding is of another namespace.", of: Cluster, namespace: "upbound", objects: []*unstructured.Unstructured{bound, active}},
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
	const want = "it grants the Role edit to ServiceAccount crossplane-system/helm-0123456789ab, which is named after one revision of the package helm; the package now runs as " +
		"ServiceAccount crossplane-system/helm-ba9876543210, which does not have that role"
	const next = ". If it needs the role now, run: kubectl -n team-a set subject RoleBinding --serviceaccount crossplane-system:helm-ba9876543210 -- -f"
	got := r.Misplaced(Cluster)
	if len(got) != 1 || got[0].Reason != want || !strings.HasSuffix(got[0].Next, next) {
		t.Errorf("got %+v", got)
	}
}
