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
		"None":    {reason: "Without a webhook the API server converts by itself.", crd: crd(map[string]any{"strategy": "None"}), want: bare},
		"Service": {reason: "Providers have a Service.", crd: crd(service), want: with("Service crossplane-system/provider-aws", "")},
		"URL":     {reason: "It can be anywhere.", crd: crd(url), want: with("https://127.0.0.1:1/convert", "")},
		"Provider": {
			reason: "The package is what a person knows.",
			crd: crd(service, owner("pkg.crossplane.io/v1", "ProviderRevision", "provider-aws-1"),
				owner("pkg.crossplane.io/v1", "Provider", "provider-aws")),
			want: with("Service crossplane-system/provider-aws", "Provider provider-aws"),
		},
		"XRD": {
			reason: "The kinds of XRs can be converted too.",
			crd:    crd(service, owner("apiextensions.crossplane.io/v2", "CompositeResourceDefinition", "xorders.example.org")),
			want:   with("Service crossplane-system/provider-aws", "CompositeResourceDefinition xorders.example.org"),
		},
		"Foreign": {
			reason: "A kind of somebody else's that is called Provider is none.", crd: crd(service, owner("example.org/v1", "Provider", "x")),
			want: with("Service crossplane-system/provider-aws", ""),
		},
		"Empty": {reason: "Nothing is in it.", crd: &unstructured.Unstructured{Object: map[string]any{}}, want: xp.Versions{}},
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
		t.Errorf("Only what is not stored as it is needs the webhook: -want, +got:\n%s", diff)
	}
}

func TestIsConversion(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"None":  {reason: "All is well."},
		"Other": {reason: "The API server fails.", err: errors.New("Internal error occurred: etcd")},
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
