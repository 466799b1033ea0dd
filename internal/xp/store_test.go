package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestStoreSecret(t *testing.T) {
	type want struct {
		Name, Config string
		OK           bool
	}
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   want
	}{
		"Named": {reason: "The object names the store and the entry.", object: xptest.XR("x", xptest.StoresTo("vault", "s")), want: want{Name: "s", Config: "vault", OK: true}},
		"Default": {
			reason: "The StoreConfig has a default.", object: xptest.MR("b", xptest.JSON(`{"spec":{"publishConnectionDetailsTo":{"name":"s"}}}`)),
			want: want{Name: "s", Config: "default", OK: true},
		},
		"None":  {reason: "The object publishes in no store.", object: xptest.MR("b"), want: want{Config: "default"}},
		"Other": {reason: "A malformed field names no entry.", object: xptest.MR("b", xptest.JSON(`{"spec":{"publishConnectionDetailsTo":"s"}}`)), want: want{Config: "default"}},
		"V2": {
			reason: "Crossplane v2 has no stores, and the field belongs to the XRD's author.", object: xptest.XRV2("x", xptest.StoresTo("vault", "s")),
			want: want{Name: "s", Config: "vault"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			got.Name, got.Config, got.OK = xp.StoreSecret(tc.object)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStoreNamespace(t *testing.T) {
	type want struct{ Namespace, Outside string }
	cases := map[string]struct {
		reason, spec string
		want         want
	}{
		"Untyped":    {reason: "The default type is Kubernetes.", spec: `{"defaultScope":"infra"}`, want: want{Namespace: "infra"}},
		"Kubernetes": {reason: "The store keeps Secrets in this cluster.", spec: `{"type":"Kubernetes","defaultScope":"infra"}`, want: want{Namespace: "infra"}},
		"Remote": {
			reason: "The store keeps Secrets in another cluster.", spec: `{"defaultScope":"infra","kubernetes":{"auth":{"source":"Secret"}}}`,
			want: want{Outside: "the Secrets of another cluster"},
		},
		"Plugin": {reason: "A plugin can keep the details anywhere.", spec: `{"type":"Plugin","defaultScope":"infra"}`, want: want{Outside: `a store of type "Plugin"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			config := xptest.Object("secrets.crossplane.io/v1alpha1", "StoreConfig", "", "default", xptest.JSON(`{"spec":`+tc.spec+`}`))
			got.Namespace, got.Outside = xp.StoreNamespace(config)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStored(t *testing.T) {
	type want struct {
		Secret  string
		Outside string
	}
	secret := func(namespace, name string) xp.Ref {
		return xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}
	}
	cases := map[string]struct {
		reason          string
		object          *unstructured.Unstructured
		secret, outside xp.Ref
		want            want
	}{
		"Secret": {reason: "The saved Secret is read again.", object: xptest.MR("b"), secret: secret("infra", "s"), want: want{Secret: "Secret infra/s"}},
		"Outside": {
			reason: "The saved store outside of the cluster is read again.", object: xptest.MR("b"), outside: xp.Ref{Kind: "StoreConfig", Name: "vault"},
			want: want{Outside: "StoreConfig vault"},
		},
		"Nothing":  {reason: "A zero value removes the field.", object: xptest.MR("b", xptest.Stored("infra", "s"))},
		"Reaching": {reason: "A claim publishes in its own namespace only.", object: xptest.Claim("o"), secret: secret("infra", "s")},
		"Invalid":  {reason: "No Secret can have such a name.", object: xptest.MR("b"), secret: secret("infra", "../s")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := tc.object
			xp.SetStored(u, tc.secret, tc.outside)
			var got want
			if r, ok := xp.Stored(u); ok {
				got.Secret = r.String()
			}
			got.Outside = xp.StoredOutside(u)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			xp.StripBackupMetadata(u)
			if xp.HasBackupMetadata(u) {
				t.Errorf("the live object must not have the field: %v", u.Object)
			}
		})
	}
}
