package xp_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
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
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, xp.Versions]{
		"Service": {Reason: "The webhook of a provider has a Service.", In: crd(service), Want: with("Service crossplane-system/provider-aws", "")},
		"URL":     {Reason: "A webhook can have any URL.", In: crd(url), Want: with("https://127.0.0.1:1/convert", "")},
		"Provider": {
			Reason: "Users know the Provider, not its revision.",
			In: crd(service, owner("pkg.crossplane.io/v1", "ProviderRevision", "provider-aws-1"),
				owner("pkg.crossplane.io/v1", "Provider", "provider-aws")),
			Want: with("Service crossplane-system/provider-aws", "Provider provider-aws"),
		},
		"XRD": {
			Reason: "An XRD can have a webhook too.",
			In:     crd(service, owner("apiextensions.crossplane.io/v2", "CompositeResourceDefinition", "xorders.example.org")),
			Want:   with("Service crossplane-system/provider-aws", "CompositeResourceDefinition xorders.example.org"),
		},
		"Foreign": {
			Reason: "A kind Provider of another group is no Crossplane package.", In: crd(service, owner("example.org/v1", "Provider", "x")),
			Want: with("Service crossplane-system/provider-aws", ""),
		},
		"Empty": {Reason: "An empty CRD has no versions.", In: &unstructured.Unstructured{Object: map[string]any{}}, Want: xp.Versions{}},
	}, xp.VersionsFrom)
}

func TestVersionsConverts(t *testing.T) {
	v := xp.Versions{Stored: "v2", Served: []string{"v1", "v2"}, Webhook: "Service a/b"}
	got := []bool{v.Converts("v1"), v.Converts("v2"), xp.Versions{Stored: "v2"}.Converts("v1"), v.Serves("v1"), v.Serves("v3")}
	if diff := cmp.Diff([]bool{true, false, false, true, false}, got); diff != "" {
		t.Errorf("only objects stored in another version need the webhook: -want, +got:\n%s", diff)
	}
}

func TestIsConversion(t *testing.T) {
	xptest.Run(t, map[string]xptest.Row[error, bool]{
		"None":  {Reason: "A call without an error needs no webhook."},
		"Other": {Reason: "The API server fails, not the webhook.", In: errors.New("Internal error occurred: etcd")},
		"Down": {
			Reason: "The webhook has no Pod.", Want: true,
			In: errors.New(`conversion webhook for aws.example.org/v1beta1, Kind=Bucket failed: Post "https://…": service "provider-aws" not found`),
		},
	}, xp.IsConversion)
}
