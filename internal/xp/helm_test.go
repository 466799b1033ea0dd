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
		"Cluster":    {reason: "A cluster-scoped Release names the namespace of its release.", of: cluster(), want: "web/sh.helm.release.v1.shop.v3"},
		"Named":      {reason: "The external-name is the name of the release.", of: cluster(xptest.Annotated(xp.AnnotationExternalName, "s")), want: "web/sh.helm.release.v1.s.v3"},
		"Local":      {reason: "A namespaced Release installs in its own namespace by default.", of: local(), want: "team-a/sh.helm.release.v1.shop.v1"},
		"Elsewhere":  {reason: "A namespaced Release can name another namespace.", of: local(xptest.Field("web", "spec", "forProvider", "namespace")), want: "web/sh.helm.release.v1.shop.v1"},
		"Failed":     {reason: "A release whose last upgrade failed still exists.", of: cluster(xptest.Field("failed", "status", "atProvider", "state")), want: "web/sh.helm.release.v1.shop.v3"},
		"Never":      {reason: "A Release without a status was never installed.", of: cluster(xptest.Without("status"))},
		"Observes":   {reason: "An observing Release installs nothing.", of: cluster(xptest.Field([]any{"Observe"}, "spec", "managementPolicies"))},
		"Malformed":  {reason: "A malformed revision number names no Secret.", of: cluster(xptest.Field("3", "status", "atProvider", "revision"))},
		"Path":       {reason: "No Secret can have such a name.", of: cluster(xptest.Annotated(xp.AnnotationExternalName, "../x"))},
		"Other":      {reason: "A kind of the same name in another group is no Release.", of: xptest.With(cluster(), xptest.Field("example.org/v1", "apiVersion"))},
		"OtherKind":  {reason: "Another kind of the group is no Release.", of: xptest.With(cluster(), xptest.Field("Chart", "kind"))},
		"NoneAtAll":  {reason: "Most MRs are no Releases.", of: xptest.MR("b")},
		"InitialToo": {reason: "The first revision counts too.", of: cluster(xptest.Field(int64(1), "status", "atProvider", "revision")), want: "web/sh.helm.release.v1.shop.v1"},
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
		t.Errorf("the older revisions that the provider can roll back to: -want, +got:\n%s", diff)
	}
	if many := xp.RevisionSecrets(cluster(xptest.Field(int64(1<<40), "status", "atProvider", "revision"))); len(many) != 19 {
		t.Errorf("a revision can be any number, and the list must stay short: %d", len(many))
	}
}
