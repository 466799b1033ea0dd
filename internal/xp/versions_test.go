package xp_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func TestVersionsFrom(t *testing.T) {
	crd := func(conversion map[string]any, owners ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "buckets.aws.example.org", "ownerReferences": owners},
			"spec": map[string]any{
				"group": "aws.example.org", "names": map[string]any{"kind": "Bucket", "plural": "buckets"}, "conversion": conversion,
				"versions": []any{
					map[string]any{"name": "v1beta1", "served": true, "storage": false},
					map[string]any{"name": "v1beta2", "served": true, "storage": true},
					map[string]any{"name": "v1alpha1", "served": false, "storage": false},
				},
			},
		}}
	}
	owner := func(apiVersion, kind, name string) any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "name": name, "uid": "u"}
	}
	bare := xp.Versions{Kind: schema.GroupKind{Group: "aws.example.org", Kind: "Bucket"}, Stored: "v1beta2", Served: []string{"v1beta1", "v1beta2"}}
	with := func(webhook, provider string) xp.Versions {
		v := bare
		v.Webhook, v.Provider = webhook, provider

		return v
	}
	service := map[string]any{"strategy": "Webhook", "webhook": map[string]any{"clientConfig": map[string]any{
		"service": map[string]any{"namespace": "crossplane-system", "name": "provider-aws"},
	}}}
	url := map[string]any{"strategy": "Webhook", "webhook": map[string]any{"clientConfig": map[string]any{"url": "https://127.0.0.1:1/convert"}}}
	cases := map[string]struct {
		reason string
		crd    *unstructured.Unstructured
		want   xp.Versions
	}{
		"None":    {reason: "Without a webhook the API server itself converts versions.", crd: crd(map[string]any{"strategy": "None"}), want: bare},
		"Service": {reason: "The webhook of a provider has a Service.", crd: crd(service), want: with("Service crossplane-system/provider-aws", "")},
		"URL":     {reason: "A webhook can have any URL.", crd: crd(url), want: with("https://127.0.0.1:1/convert", "")},
		"Provider": {
			reason: "Users know the Provider, not its revision.",
			crd: crd(service, owner("pkg.crossplane.io/v1", "ProviderRevision", "provider-aws-1"),
				owner("pkg.crossplane.io/v1", "Provider", "provider-aws")),
			want: with("Service crossplane-system/provider-aws", "Provider provider-aws"),
		},
		"XRD": {
			reason: "An XRD can have a webhook too.",
			crd:    crd(service, owner("apiextensions.crossplane.io/v2", "CompositeResourceDefinition", "xorders.example.org")),
			want:   with("Service crossplane-system/provider-aws", "CompositeResourceDefinition xorders.example.org"),
		},
		"Foreign": {
			reason: "A kind Provider of another group is no Crossplane package.", crd: crd(service, owner("example.org/v1", "Provider", "x")),
			want: with("Service crossplane-system/provider-aws", ""),
		},
		"Empty": {reason: "An empty CRD has no versions.", crd: &unstructured.Unstructured{Object: map[string]any{}}, want: xp.Versions{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, xp.VersionsFrom(tc.crd)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestVersionsConverts(t *testing.T) {
	v := xp.Versions{Stored: "v2", Served: []string{"v1", "v2"}, Webhook: "Service a/b"}
	got := []bool{v.Converts("v1"), v.Converts("v2"), xp.Versions{Stored: "v2"}.Converts("v1"), v.Serves("v1"), v.Serves("v3")}
	if diff := cmp.Diff([]bool{true, false, false, true, false}, got); diff != "" {
		t.Errorf("only objects stored in another version need the webhook: -want, +got:\n%s", diff)
	}
}

func TestIsConversion(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"None":  {reason: "A call without an error needs no webhook."},
		"Other": {reason: "The API server fails, not the webhook.", err: errors.New("Internal error occurred: etcd")},
		"Down": {
			reason: "The webhook has no Pod.", want: true,
			err: errors.New(`conversion webhook for aws.example.org/v1beta1, Kind=Bucket failed: Post "https://…": service "provider-aws" not found`),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := xp.IsConversion(tc.err); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}
