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
		"None":     {reason: "Most MRs read no Secrets.", spec: `{"forProvider":{"region":"eu"}}`},
		"Password": {reason: "Upjet names its Secret references so.", spec: `{"forProvider":{"passwordSecretRef":{"namespace":"infra","name":"db","key":"p"}}}`, want: []string{"infra/db"}},
		"Initial":  {reason: "A reference can be in initProvider only.", spec: `{"initProvider":{"passwordSecretRef":{"namespace":"infra","name":"db"}}}`, want: []string{"infra/db"}},
		"Deep": {
			reason: "A reference can be at any depth and in lists.",
			spec: `{"forProvider":{"auth":[{"tls":{"caSecretRef":{"namespace":"b","name":"ca"}}}],"pullSecretRefs":[{"namespace":"a","name":"1"},{"namespace":"a","name":"2"}],` +
				`"valuesFrom":[{"secretKeyRef":{"namespace":"c","name":"v"}}]}}`,
			want: []string{"a/1", "a/2", "b/ca", "c/v"},
		},
		"Twice": {
			reason: "Two references to one Secret give one entry.", want: []string{"infra/db"},
			spec: `{"forProvider":{"aSecretRef":{"namespace":"infra","name":"db"}},"initProvider":{"bSecretRef":{"namespace":"infra","name":"db"}}}`,
		},
		"Published": {reason: "The published Secret is no input.", spec: `{"writeConnectionSecretToRef":{"namespace":"infra","name":"db"},"forProvider":{}}`},
		"Manifest":  {reason: "provider-kubernetes manages the manifest and does not read it.", spec: `{"forProvider":{"manifest":{"spec":{"secretRef":{"namespace":"a","name":"b"}}}}}`},
		"Malformed": {
			reason: "A reference to an impossible name is no input.",
			spec:   `{"forProvider":{"aSecretRef":"x","bSecretRef":{"name":"b"},"cSecretRef":{"namespace":"a"},"dSecretRef":{"namespace":"a","name":"../b/c"},"eSecretRef":[1]}}`,
		},
		"Odd": {reason: "A malformed forProvider has no references.", spec: `{"forProvider":"secretRef"}`},
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
	local := xptest.NamespacedMR("b", xptest.JSON(`{"spec":{"forProvider":{"aSecretRef":{"name":"db"},"bSecretRef":{"namespace":"team-a","name":"b"},`+
		`"cSecretRef":{"namespace":"infra","name":"c"}}}}`))
	var got []string
	for _, r := range xp.InputSecrets(local) {
		got = append(got, r.Path())
	}
	if diff := cmp.Diff([]string{"team-a/b", "team-a/db"}, got); diff != "" {
		t.Errorf("a namespaced MR reads Secrets of its own namespace: -want, +got:\n%s", diff)
	}
}

// Any writer to the bucket can write the note. So it can hold anything, and it counts for Secrets
// that the MR names only.
func TestInputs(t *testing.T) {
	secret := func(name string) xp.Ref {
		return xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "infra", Name: name}
	}
	mr := xptest.MR("b")
	xp.SetInputs(mr, []xp.Input{{Ref: secret("a"), Exists: true, Stored: true}, {Ref: secret("b"), Exists: true}, {Ref: secret("c")}})
	for _, want := range []xp.Input{{Ref: secret("a"), Exists: true, Stored: true}, {Ref: secret("b"), Exists: true}, {Ref: secret("c")}} {
		if got, ok := xp.Inputs(mr)(want.Ref); !ok || got != want {
			t.Errorf("got %+v, %v, want %+v", got, ok, want)
		}
	}
	if got, ok := xp.Inputs(mr)(secret("d")); ok {
		t.Errorf("got %+v for a Secret that is not recorded", got)
	}
	for _, forged := range []any{"x", []any{"x", int64(1), map[string]any{"namespace": int64(1), "name": []any{}, "exists": "yes"}}, map[string]any{}} {
		if got, ok := xp.Inputs(xptest.MR("b", xptest.Field(forged, "metadata", xp.FieldInputs)))(secret("a")); ok {
			t.Errorf("got %+v from %v", got, forged)
		}
	}
	if !xp.HasBackupMetadata(mr) {
		t.Error("the inputs must count as backup metadata")
	}
	xp.StripBackupMetadata(mr)
	if xp.HasBackupMetadata(mr) {
		t.Error("the strip must remove the inputs too")
	}
	xp.SetInputs(mr, nil)
	if xp.HasBackupMetadata(mr) {
		t.Error("an empty list must write no field")
	}
}
