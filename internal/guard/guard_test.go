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
		"Fine": {
			reason: "What claims, XRs, namespaces and users are called is taken.",
			guard:  Guard{Kinds: []string{"orders.example.org", "*.example.org"}, Namespaces: []string{"team-a"}, Users: []string{"system:serviceaccount:velero:velero", `o"k\`}},
		},
		"NoGroup":     {reason: "A kind without a group is Kubernetes' own.", guard: Guard{Kinds: []string{"pods"}}, want: "cannot read"},
		"Builtin":     {reason: "So is one of a group without a dot.", guard: Guard{Kinds: []string{"deployments.apps"}}, want: "can't be repaired"},
		"Kubernetes":  {reason: "Nobody could bind a role.", guard: Guard{Kinds: []string{"*.rbac.authorization.k8s.io"}}, want: "can't be repaired"},
		"Approved":    {reason: "These groups are Kubernetes' too.", guard: Guard{Kinds: []string{"things.node.kubernetes.io"}}, want: "can't be repaired"},
		"Velero":      {reason: "Nobody could restore.", guard: Guard{Kinds: []string{"restores.velero.io"}}, want: "can't be repaired"},
		"Crossplane":  {reason: "Nobody could install a provider.", guard: Guard{Kinds: []string{"providers.pkg.crossplane.io"}}, want: "can't be repaired"},
		"Everything":  {reason: "Nobody could do anything.", guard: Guard{Kinds: []string{"*"}}, want: "cannot read"},
		"AllGroups":   {reason: "The same.", guard: Guard{Kinds: []string{"*.*"}}, want: "cannot read"},
		"Subresource": {reason: "A rule is for what is created.", guard: Guard{Kinds: []string{"orders/status.example.org"}}, want: "cannot read"},
		"Namespace":   {reason: "No namespace is called so.", guard: Guard{Namespaces: []string{`a"] || true || "" in ["`}}, want: "cannot guard the namespace"},
		"User":        {reason: "Nobody is called so.", guard: Guard{Users: []string{"a\nb"}}, want: "cannot let the user"},
		"NoUser":      {reason: "Who has no name is nobody.", guard: Guard{Users: []string{""}}, want: "cannot let the user"},
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
	up := Guard{Kinds: []string{"a.example.org"}, Namespaces: []string{"team-a"}, Users: []string{"u"}, By: "alice", Since: "monday"}
	all := up
	all.Namespaces = nil
	cases := map[string]struct {
		reason    string
		up, other Guard
		want      Guard
	}{
		"None": {
			reason: "What is asked for is in order, and each once.",
			other:  Guard{Kinds: []string{"b.example.org", "a.example.org", "b.example.org"}, Namespaces: []string{"n"}, Users: []string{"u"}, By: "bob", Since: "tuesday"},
			want:   Guard{Kinds: []string{"a.example.org", "b.example.org"}, Namespaces: []string{"n"}, Users: []string{"u"}, By: "bob", Since: "tuesday"},
		},
		"More": {
			reason: "What is guarded already still is, and it is who put it up first that is named.",
			up:     up, other: Guard{Kinds: []string{"b.example.org"}, Namespaces: []string{"team-b"}, Users: []string{"v"}, Paused: true, By: "bob", Since: "tuesday"},
			want: Guard{
				Kinds: []string{"a.example.org", "b.example.org"}, Namespaces: []string{"team-a", "team-b"}, Users: []string{"u", "v"}, Paused: true, By: "alice", Since: "monday",
			},
		},
		"AllNow": {reason: "All namespaces are more than some.", up: up, other: Guard{Since: "tuesday"}, want: all},
		"AllBefore": {
			reason: "Some are no less than all: to guard less it is taken down before.", up: all, other: Guard{Namespaces: []string{"team-b"}, Since: "tuesday"}, want: all,
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
		"V1":        {reason: "The XRs of v1 are cluster-scoped, and its claims are not.", xrd: xrd("v1", "example.org", claims), want: []Kind{kind("xorders", false), kind("orders", true)}},
		"V2":        {reason: "XRs of v2 are in namespaces.", xrd: xrd("v2", "example.org"), want: []Kind{kind("xorders", true)}},
		"V2Cluster": {reason: "Unless they are not.", xrd: xrd("v2", "example.org", xptest.Field("Cluster", "spec", "scope")), want: []Kind{kind("xorders", false)}},
		"V2Legacy": {
			reason: "Or have claims.", xrd: xrd("v2", "example.org", claims, xptest.Field("LegacyCluster", "spec", "scope")), want: []Kind{kind("xorders", false), kind("orders", true)},
		},
		"Hostile": {reason: "Nobody's XRD has Kubernetes' own kinds guarded.", xrd: xrd("v2", "apps")},
		"Wildcard": {
			reason: "Nor all of a group.", xrd: xrd("v2", "example.org", xptest.Field("*", "spec", "names", "plural")),
		},
		"Empty": {reason: "One that says nothing is of nothing.", xrd: xptest.Object("apiextensions.crossplane.io/v1", "CompositeResourceDefinition", "", "x")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, KindsOf(tc.xrd)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
