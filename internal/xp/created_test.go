package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestCreatedAs(t *testing.T) {
	const v1, v2 = xp.GroupAPIExtensions + "/v1", xp.GroupAPIExtensions + "/v2"
	xrd := func(version string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object(version, "CompositeResourceDefinition", "", "xorders.example.org", o...)
	}
	scope := func(scope string) xptest.Option { return xptest.Field(scope, "spec", "scope") }
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   string
	}{
		"Legacy":      {reason: "v2 refuses the scope of an XRD with claims.", object: xrd(v2, scope(xp.ScopeLegacy)), want: v1},
		"LegacyV1":    {reason: "v1 accepts it.", object: xrd(v1, scope(xp.ScopeLegacy)), want: v1},
		"Crossplane1": {reason: "An XRD of Crossplane v1 has no scope.", object: xrd(v1), want: v1},
		"Namespaced":  {reason: "v2 accepts what it was made for.", object: xrd(v2, scope("Namespaced")), want: v2},
		"Cluster":     {reason: "v2 accepts what it was made for.", object: xrd(v2, scope("Cluster")), want: v2},
		"ClusterV1":   {reason: "v1 accepts the scopes of v2, too.", object: xrd(v1, scope("Cluster")), want: v1},
		"Unscoped":    {reason: "v2 makes it Namespaced.", object: xrd(v2), want: v2},
		"Odd":         {reason: "A user wrote a scope that is no text; the API server refuses it.", object: xrd(v2, xptest.Field(int64(1), "spec", "scope")), want: v2},
		"Other": {
			reason: "Only XRDs have such versions.", object: xptest.XRV2("x", scope(xp.ScopeLegacy)), want: xptest.ModernVersion,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, xp.CreatedAs(tc.object).GroupVersion().String()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
