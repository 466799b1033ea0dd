package adoption

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestWithoutPlugin(t *testing.T) {
	velero := func(name string, initContainers any) *unstructured.Unstructured {
		return xptest.Object("apps/v1", "Deployment", "velero", name, xptest.Field([]any{map[string]any{"name": "velero"}}, "spec", "template", "spec", "containers"),
			xptest.Field(initContainers, "spec", "template", "spec", "initContainers"))
	}
	of := func(name, image string) any { return map[string]any{"name": name, "image": image} }
	aws := of("velero-plugin-for-aws", "velero/velero-plugin-for-aws:v1.13.0")
	cases := map[string]struct {
		reason      string
		deployments []*unstructured.Unstructured
		want        string
	}{
		"None":     {reason: "Velero is not installed."},
		"Other":    {reason: "Another program runs in Velero's namespace.", deployments: []*unstructured.Unstructured{xptest.Object("apps/v1", "Deployment", "velero", "ui")}},
		"Without":  {reason: "Velero runs with the plugin of its object store only.", deployments: []*unstructured.Unstructured{velero("velero", []any{aws})}, want: "velero"},
		"NoPlugin": {reason: "Velero runs without a plugin.", deployments: []*unstructured.Unstructured{velero("velero", nil)}, want: "velero"},
		"With": {
			reason:      "velero plugin add names the container after the image.",
			deployments: []*unstructured.Unstructured{velero("velero", []any{aws, of("crossplane-contrib-velero-plugin-for-crossplane", "r/velero-plugin-for-crossplane:v1")})},
		},
		"Mirror":    {reason: "A mirror can rename the image.", deployments: []*unstructured.Unstructured{velero("velero", []any{of("p", "r:5000/mirror/crossplane@sha256:0")})}},
		"Renamed":   {reason: "With OADP the user chooses the name.", deployments: []*unstructured.Unstructured{velero("velero", []any{of("crossplane", "r/p@sha256:0")})}},
		"Two":       {reason: "One of two servers has the plugin.", deployments: []*unstructured.Unstructured{velero("old", nil), velero("new", []any{of("crossplane", "")})}},
		"Malformed": {reason: "The API server admits no such list, a fake can.", deployments: []*unstructured.Unstructured{velero("velero", []any{"x", nil, of("a", "b")})}, want: "velero"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := WithoutPlugin(tc.deployments)
			if got.Name != tc.want || ok != (tc.want != "") {
				t.Errorf("%s\ngot %q, %t; want %q", tc.reason, got.Name, ok, tc.want)
			}
		})
	}
}
