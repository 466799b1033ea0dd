package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

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
		"Cluster":    {reason: "A cluster-scoped Release says where its release is.", of: cluster(), want: "web/sh.helm.release.v1.shop.v3"},
		"Named":      {reason: "The release is called by the external-name.", of: cluster(xptest.Annotated(xp.AnnotationExternalName, "s")), want: "web/sh.helm.release.v1.s.v3"},
		"Local":      {reason: "That of a namespaced one is in its own namespace.", of: local(), want: "team-a/sh.helm.release.v1.shop.v1"},
		"Elsewhere":  {reason: "Unless it says another.", of: local(xptest.Field("web", "spec", "forProvider", "namespace")), want: "web/sh.helm.release.v1.shop.v1"},
		"Failed":     {reason: "A release whose last upgrade has failed is there too.", of: cluster(xptest.Field("failed", "status", "atProvider", "state")), want: "web/sh.helm.release.v1.shop.v3"},
		"Never":      {reason: "It was never installed.", of: cluster(xptest.Without("status"))},
		"Observes":   {reason: "It installs nothing.", of: cluster(xptest.Field([]any{"Observe"}, "spec", "managementPolicies"))},
		"Malformed":  {reason: "Anything can be in it.", of: cluster(xptest.Field("3", "status", "atProvider", "revision"))},
		"Path":       {reason: "Nothing can be called that.", of: cluster(xptest.Annotated(xp.AnnotationExternalName, "../x"))},
		"Other":      {reason: "Somebody else's kind of the name is none.", of: xptest.With(cluster(), xptest.Field("example.org/v1", "apiVersion"))},
		"OtherKind":  {reason: "Nor is another of the group.", of: xptest.With(cluster(), xptest.Field("Chart", "kind"))},
		"NoneAtAll":  {reason: "Most MRs are none.", of: xptest.MR("b")},
		"InitialToo": {reason: "Its first revision counts.", of: cluster(xptest.Field(int64(1), "status", "atProvider", "revision")), want: "web/sh.helm.release.v1.shop.v1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, ok := xp.ReleaseSecret(tc.of)
			if ok != (tc.want != "") || ok && r.Path() != tc.want {
				t.Errorf("%s\ngot %v, %v, want %q", tc.reason, r, ok, tc.want)
			}
			if ok && !xp.IsReleaseSecret(r.Name) {
				t.Errorf("%s is not known for one", r)
			}
			var inputs []string
			for _, r := range xp.InputSecrets(tc.of) {
				inputs = append(inputs, r.Path())
			}
			if tc.want != "" && !cmp.Equal([]string{tc.want}, inputs) {
				t.Errorf("%s\nits provider reads %q", tc.reason, inputs)
			}
		})
	}
	var older []string
	for _, r := range xp.RevisionSecrets(cluster()) {
		older = append(older, r.Path())
	}
	if diff := cmp.Diff([]string{"web/sh.helm.release.v1.shop.v2", "web/sh.helm.release.v1.shop.v1"}, older); diff != "" {
		t.Errorf("What the provider can go back to: -want, +got:\n%s", diff)
	}
	if many := xp.RevisionSecrets(cluster(xptest.Field(int64(1<<40), "status", "atProvider", "revision"))); len(many) != 19 {
		t.Errorf("A revision can be any number: %d", len(many))
	}
}
