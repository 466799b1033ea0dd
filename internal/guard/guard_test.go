package guard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		guard  Guard
		want   string
	}{
		"Valid": {
			reason: "The guard takes the names of claims, XRs, namespaces and users.",
			guard:  Guard{Kinds: []string{"orders.example.org", "*.example.org"}, Namespaces: []string{"team-a"}, Users: []string{"system:serviceaccount:velero:velero", `o"k\`}},
		},
		"NoGroup":     {reason: "A kind without a group belongs to Kubernetes.", guard: Guard{Kinds: []string{"pods"}}, want: "cannot read"},
		"Builtin":     {reason: "A group without a dot belongs to Kubernetes too.", guard: Guard{Kinds: []string{"deployments.apps"}}, want: "a restore needs its kinds"},
		"Kubernetes":  {reason: "A guard of RBAC would keep administrators from binding a role.", guard: Guard{Kinds: []string{"*.rbac.authorization.k8s.io"}}, want: "a restore needs its kinds"},
		"Approved":    {reason: "Groups under k8s.io belong to Kubernetes too.", guard: Guard{Kinds: []string{"things.node.kubernetes.io"}}, want: "a restore needs its kinds"},
		"Velero":      {reason: "A guard of Velero's kinds would block restores.", guard: Guard{Kinds: []string{"restores.velero.io"}}, want: "a restore needs its kinds"},
		"Crossplane":  {reason: "A guard of Crossplane's kinds would block the install of providers.", guard: Guard{Kinds: []string{"providers.pkg.crossplane.io"}}, want: "a restore needs its kinds"},
		"Everything":  {reason: "A guard of everything would block the whole cluster.", guard: Guard{Kinds: []string{"*"}}, want: "cannot read"},
		"AllGroups":   {reason: "A wildcard for kind and group would block the whole cluster too.", guard: Guard{Kinds: []string{"*.*"}}, want: "cannot read"},
		"Subresource": {reason: "The guard covers the creation of objects, not their subresources.", guard: Guard{Kinds: []string{"orders/status.example.org"}}, want: "cannot read"},
		"Namespace":   {reason: "No namespace has such a name, and the name must not end the CEL string.", guard: Guard{Namespaces: []string{`a"] || true || "" in ["`}}, want: "cannot guard the namespace"},
		"User":        {reason: "No user has such a name.", guard: Guard{Users: []string{"a\nb"}}, want: "cannot allow the user"},
		"NoUser":      {reason: "An empty name means no user.", guard: Guard{Users: []string{""}}, want: "cannot allow the user"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.guard.Validate()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	up := Guard{Kinds: []string{"a.example.org"}, Namespaces: []string{"team-a"}, Users: []string{"u"}, CreatedBy: "alice", Since: "monday"}
	all := up
	all.Namespaces = nil
	cases := map[string]struct {
		reason    string
		up, other Guard
		want      Guard
	}{
		"None": {
			reason: "The merged guard lists each kind once, in order.",
			other:  Guard{Kinds: []string{"b.example.org", "a.example.org", "b.example.org"}, Namespaces: []string{"n"}, Users: []string{"u"}, CreatedBy: "bob", Since: "tuesday"},
			want:   Guard{Kinds: []string{"a.example.org", "b.example.org"}, Namespaces: []string{"n"}, Users: []string{"u"}, CreatedBy: "bob", Since: "tuesday"},
		},
		"More": {
			reason: "A merge keeps what the guard covers already, and the name of its first author.",
			up:     up, other: Guard{Kinds: []string{"b.example.org"}, Namespaces: []string{"team-b"}, Users: []string{"v"}, Paused: true, CreatedBy: "bob", Since: "tuesday"},
			want: Guard{
				Kinds: []string{"a.example.org", "b.example.org"}, Namespaces: []string{"team-a", "team-b"}, Users: []string{"u", "v"}, Paused: true, CreatedBy: "alice", Since: "monday",
			},
		},
		"AllNow": {reason: "All namespaces include the ones that the guard covers.", up: up, other: Guard{Since: "tuesday"}, want: all},
		"AllBefore": {
			reason: "A merge never narrows a guard from all namespaces to some; an administrator takes it down first.", up: all, other: Guard{Namespaces: []string{"team-b"}, Since: "tuesday"}, want: all,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.up.Merge(tc.other)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKindsOf(t *testing.T) {
	xrd := func(version, group string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("apiextensions.crossplane.io/"+version, "CompositeResourceDefinition", "", "xorders."+group,
			append([]xptest.Option{xptest.Field(group, "spec", "group"), xptest.Field("xorders", "spec", "names", "plural")}, o...)...)
	}
	claims := xptest.Field("orders", "spec", "claimNames", "plural")
	kind := func(plural string, namespaced bool) Kind {
		return Kind{GroupResource: schema.GroupResource{Group: "example.org", Resource: plural}, Namespaced: namespaced}
	}
	cases := map[string]struct {
		reason string
		xrd    *unstructured.Unstructured
		want   []Kind
	}{
		"V1":        {reason: "The XRs of v1 are cluster-scoped, and its claims are namespaced.", xrd: xrd("v1", "example.org", claims), want: []Kind{kind("xorders", false), kind("orders", true)}},
		"V2":        {reason: "XRs of v2 are namespaced by default.", xrd: xrd("v2", "example.org"), want: []Kind{kind("xorders", true)}},
		"V2Cluster": {reason: "The XRD can declare XRs of v2 cluster-scoped.", xrd: xrd("v2", "example.org", xptest.Field("Cluster", "spec", "scope")), want: []Kind{kind("xorders", false)}},
		"V2Legacy": {
			reason: "A legacy XRD of v2 can have claims.", xrd: xrd("v2", "example.org", claims, xptest.Field("LegacyCluster", "spec", "scope")), want: []Kind{kind("xorders", false), kind("orders", true)},
		},
		"Hostile": {reason: "An XRD must not bring the kinds of Kubernetes under guard.", xrd: xrd("v2", "apps")},
		"Wildcard": {
			reason: "An XRD must not bring all kinds of a group under guard.", xrd: xrd("v2", "example.org", xptest.Field("*", "spec", "names", "plural")),
		},
		"Empty": {reason: "An XRD without a spec defines no kinds.", xrd: xptest.Object("apiextensions.crossplane.io/v1", "CompositeResourceDefinition", "", "x")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, KindsOf(tc.xrd)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
