package xp_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func TestMatchesResource(t *testing.T) {
	buckets := schema.GroupResource{Group: "cloud.example.org", Resource: "buckets"}
	secrets := schema.GroupResource{Resource: "secrets"}
	cases := map[string]struct {
		reason   string
		filters  []string
		resource schema.GroupResource
		want     bool
	}{
		"None":       {reason: "No filter matches no resource.", resource: buckets},
		"Whole":      {reason: "The filter names the resource with its group.", filters: []string{"pods", "buckets.cloud.example.org"}, resource: buckets, want: true},
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
