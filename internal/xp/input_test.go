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
	local := xptest.NamespacedMR("b", xptest.JSON(`{"spec":{"forProvider":{"aSecretRef":{"name":"db"},"bSecretRef":{"namespace":"team-a","name":"b"},`+
		`"cSecretRef":{"namespace":"infra","name":"c"}}}}`))
	var got []string
	for _, r := range xp.InputSecrets(local) {
		got = append(got, r.Path())
	}
	if diff := cmp.Diff([]string{"team-a/b", "team-a/db"}, got); diff != "" {
		t.Errorf("Those of a namespaced MR are in its own namespace: -want, +got:\n%s", diff)
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
		t.Errorf("got %+v of one that is not noted", got)
	}
	for _, forged := range []any{"x", []any{"x", int64(1), map[string]any{"namespace": int64(1), "name": []any{}, "exists": "yes"}}, map[string]any{}} {
		if got, ok := xp.Inputs(xptest.MR("b", xptest.Field(forged, "metadata", xp.FieldInputs)))(secret("a")); ok {
			t.Errorf("got %+v from %v", got, forged)
		}
	}
	if !xp.HasBackupMetadata(mr) {
		t.Error("It is a note")
	}
	xp.StripBackupMetadata(mr)
	if xp.HasBackupMetadata(mr) {
		t.Error("It comes off with the others")
	}
	xp.SetInputs(mr, nil)
	if xp.HasBackupMetadata(mr) {
		t.Error("Nothing is no note")
	}
}
