package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestInputSecrets(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   []string
	}{
		"None":     {reason: "Most MRs have none.", spec: `{"forProvider":{"region":"eu"}}`},
		"Password": {reason: "Upjet's are called so.", spec: `{"forProvider":{"passwordSecretRef":{"namespace":"infra","name":"db","key":"p"}}}`, want: []string{"infra/db"}},
		"Initial":  {reason: "They can be there only at first.", spec: `{"initProvider":{"passwordSecretRef":{"namespace":"infra","name":"db"}}}`, want: []string{"infra/db"}},
		"Deep": {
			reason: "They can be at any depth, and in lists.",
			spec: `{"forProvider":{"auth":[{"tls":{"caSecretRef":{"namespace":"b","name":"ca"}}}],"pullSecretRefs":[{"namespace":"a","name":"1"},{"namespace":"a","name":"2"}],` +
				`"valuesFrom":[{"secretKeyRef":{"namespace":"c","name":"v"}}]}}`,
			want: []string{"a/1", "a/2", "b/ca", "c/v"},
		},
		"Twice": {
			reason: "One is enough.", want: []string{"infra/db"},
			spec: `{"forProvider":{"aSecretRef":{"namespace":"infra","name":"db"}},"initProvider":{"bSecretRef":{"namespace":"infra","name":"db"}}}`,
		},
		"Published": {reason: "What it publishes is no input.", spec: `{"writeConnectionSecretToRef":{"namespace":"infra","name":"db"},"forProvider":{}}`},
		"Manifest":  {reason: "What provider-kubernetes manages is not what it reads.", spec: `{"forProvider":{"manifest":{"spec":{"secretRef":{"namespace":"a","name":"b"}}}}}`},
		"Malformed": {
			reason: "What names nothing that can be there is none.",
			spec:   `{"forProvider":{"aSecretRef":"x","bSecretRef":{"name":"b"},"cSecretRef":{"namespace":"a"},"dSecretRef":{"namespace":"a","name":"../b/c"},"eSecretRef":[1]}}`,
		},
		"Odd": {reason: "It can be anything.", spec: `{"forProvider":"secretRef"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range xp.InputSecrets(xptest.MR("b", xptest.JSON(`{"spec":`+tc.spec+`}`))) {
				got = append(got, r.Path())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if got := xp.InputSecrets(xptest.NamespacedMR("b", xptest.JSON(`{"spec":{"forProvider":{"aSecretRef":{"namespace":"infra","name":"db"}}}}`))); got != nil {
		t.Errorf("Those of a namespaced MR are in its own namespace; got %v", got)
	}
}
