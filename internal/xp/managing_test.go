package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestAccountOf(t *testing.T) {
	uses := func(json string) xptest.Option { return xptest.JSON(`{"spec":{"providerConfigRef":` + json + `}}`) }
	cases := map[string]struct {
		reason string
		mr     *unstructured.Unstructured
		want   xp.Ref
	}{
		"Cluster": {reason: "Crossplane v1 has one kind of ProviderConfig.", mr: xptest.MR("b", uses(`{"name":"a"}`)), want: xp.Ref{Kind: "ProviderConfig", Name: "a"}},
		"Wide": {
			reason: "A ClusterProviderConfig serves all namespaces.", mr: xptest.NamespacedMR("b", uses(`{"kind":"ClusterProviderConfig","name":"a"}`)),
			want: xp.Ref{Kind: "ClusterProviderConfig", Name: "a"},
		},
		"Local": {
			reason: "A ProviderConfig serves one namespace.", mr: xptest.NamespacedMR("b", uses(`{"kind":"ProviderConfig","name":"a"}`)),
			want: xp.Ref{Kind: "ProviderConfig", Namespace: "team-a", Name: "a"},
		},
		"Default": {reason: "The default is a ClusterProviderConfig.", mr: xptest.NamespacedMR("b", uses(`{"name":"a"}`)), want: xp.Ref{Kind: "ClusterProviderConfig", Name: "a"}},
		"Policy":  {reason: "The name counts, not the policy.", mr: xptest.MR("b", uses(`{"name":"a","policy":{"resolve":"Always"}}`)), want: xp.Ref{Kind: "ProviderConfig", Name: "a"}},
		"Nothing": {reason: "MRs without a named ProviderConfig share the default one.", mr: xptest.MR("b", uses(`7`)), want: xp.Ref{Kind: "ProviderConfig"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, xp.AccountOf(tc.mr)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRunBy(t *testing.T) {
	xr := xptest.XR("x")
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   []string
	}{
		"Composition": {reason: "A Composition names its XR kind.", object: xptest.Composition("c", xr), want: []string{"XOrder.example.org"}},
		"Revision":    {reason: "A revision names its XR kind too.", object: xptest.Revision("c-1", xr), want: []string{"XOrder.example.org"}},
		"XRD": {
			reason: "An XRD defines XRs and claims.", object: xptest.XRD("xorders.example.org", xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XOrder"},
				"claimNames":{"kind":"OrderClaim"}}}`)), want: []string{"XOrder.example.org", "OrderClaim.example.org"},
		},
		"Malformed": {reason: "A malformed Composition names no kind.", object: xptest.Composition("c", xr, xptest.Field("x", "spec", "compositeTypeRef"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, gk := range xp.RunBy(tc.object) {
				got = append(got, gk.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
