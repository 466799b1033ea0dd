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
		"None":       {reason: "No filter is for nothing.", resource: buckets},
		"Whole":      {reason: "It is named.", filters: []string{"pods", "buckets.cloud.example.org"}, resource: buckets, want: true},
		"Plural":     {reason: "Velero completes it.", filters: []string{"buckets"}, resource: buckets, want: true},
		"Singular":   {reason: "The same.", filters: []string{"bucket"}, resource: buckets, want: true},
		"Kind":       {reason: "The same.", filters: []string{"Secret"}, resource: secrets, want: true},
		"GroupBegin": {reason: "An API server knows a group by its beginning.", filters: []string{"buckets.cloud"}, resource: buckets, want: true},
		"Star":       {reason: "A star is for all.", filters: []string{"*"}, resource: secrets, want: true},
		"Glob":       {reason: "Velero allows globs.", filters: []string{"*.cloud.example.org"}, resource: buckets, want: true},
		"OtherGroup": {reason: "It is another's.", filters: []string{"buckets.example.org"}, resource: buckets},
		"Other":      {reason: "It is something else.", filters: []string{"secrets", "[", ""}, resource: buckets},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := xp.MatchesResource(tc.filters, tc.resource); got != tc.want {
				t.Errorf("%s\ngot %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
