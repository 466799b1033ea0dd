package xp_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func TestCustomResources(t *testing.T) {
	include, exclude := xp.CustomResources()
	if len(include) == 0 || len(exclude) == 0 {
		t.Error("an action without an include list applies to all kinds, and without an exclude list to CRDs, which can exceed a plugin call")
	}
	include[0] = "changed"
	if again, _ := xp.CustomResources(); again[0] == "changed" {
		t.Error("the lists must be copies: an action appends to them")
	}
}

func TestIsCustomGroup(t *testing.T) {
	for group, want := range map[string]bool{
		"example.org": true, "pkg.crossplane.io": true, "s3.aws.upbound.io": true, "": false, "apps": false, "batch": false,
		"rbac.authorization.k8s.io": false, "velero.io": true, "x.velero.io": false,
	} {
		if got := xp.IsCustomGroup(group); got != want {
			t.Errorf("IsCustom(%q): got %v, want %v", group, got, want)
		}
	}
}

func TestIsCrossplaneGroup(t *testing.T) {
	for group, want := range map[string]bool{
		"apiextensions.crossplane.io": true, "pkg.crossplane.io": true, "ops.crossplane.io": true, "protection.crossplane.io": true,
		"kubernetes.crossplane.io": false, "example.org": false, "": false,
	} {
		if got := xp.IsCrossplaneGroup(group); got != want {
			t.Errorf("IsOwn(%q): got %v, want %v", group, got, want)
		}
	}
}

func TestKubernetesResources(t *testing.T) {
	include, exclude := xp.KubernetesResources()
	if slices.Contains(include, "secrets") {
		t.Error("the action for Secrets needs no labels: a connection Secret has none")
	}
	if !slices.Contains(exclude, "customresourcedefinitions.apiextensions.k8s.io") {
		t.Error("a CRD can exceed a plugin call")
	}
}

// The resources of the action must include every kind that runs a package. An object of another
// kind would be restored.
func TestRuntimeResources(t *testing.T) {
	runtime := xp.RuntimeResources()
	for _, kind := range []string{"deployments.apps", "services", "serviceaccounts", "clusterroles.", "clusterrolebindings."} {
		if !slices.ContainsFunc(runtime, func(s string) bool { return strings.HasPrefix(s, kind) }) {
			t.Errorf("%s is not among %v", kind, runtime)
		}
	}
}

func TestMatchesResource(t *testing.T) {
	buckets := schema.GroupResource{Group: "cloud.example.org", Resource: "buckets"}
	secrets := schema.GroupResource{Resource: "secrets"}
	cases := map[string]struct {
		reason   string
		filters  []string
		resource schema.GroupResource
		want     bool
	}{
		"Plural":     {reason: "Velero completes a plural with its group.", filters: []string{"buckets"}, resource: buckets, want: true},
		"Singular":   {reason: "Velero completes a singular too.", filters: []string{"bucket"}, resource: buckets, want: true},
		"Kind":       {reason: "Velero completes a kind too.", filters: []string{"Secret"}, resource: secrets, want: true},
		"GroupBegin": {reason: "An API server accepts the start of a group.", filters: []string{"buckets.cloud"}, resource: buckets, want: true},
		"Star":       {reason: "A star matches all resources.", filters: []string{"*"}, resource: secrets, want: true},
		"Glob":       {reason: "Velero allows globs.", filters: []string{"*.cloud.example.org"}, resource: buckets, want: true},
		"OtherGroup": {reason: "The filter names a resource of another group.", filters: []string{"buckets.example.org"}, resource: buckets},
		"Other":      {reason: "The filters name other resources.", filters: []string{"secrets", "[", ""}, resource: buckets},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := xp.MatchesResource(tc.filters, tc.resource); got != tc.want {
				t.Errorf("%s\ngot %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
