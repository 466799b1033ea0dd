package policy

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const example = `
version: v1
clusterScopedFilterPolicy:
  resourceFilters:
  - kinds: [xorders.example.org]
    names: [shop-*]
namespacedFilterPolicies:
- namespaces: [team-*]
  resourceFilters:
  - kinds: [secrets]
- namespaces: [team-a, other]
  resourceFilters:
  - kinds: [orderclaim]
    names: [shop, "db-*"]
    excludedNames: [db-old]
  - kinds: [configmaps]
    orLabelSelectors: [{matchLabels: {app: a}}, {matchLabels: {app: b}}]
  - kinds: [Bucket]
    labelSelector: {}
- namespaces: [rest]
  resourceFilters:
  - kinds: [secrets]
    names: [one]
  - labelSelector: {matchLabels: {app: a}}
`

func TestPolicies(t *testing.T) {
	p, err := Parse(map[string]string{"policy.yaml": example})
	if err != nil || p.CheckRestore() != nil {
		t.Fatal(err, p.CheckRestore())
	}
	const claims, configMaps = "orderclaims.example.org", "configmaps"
	cases := map[string]struct {
		reason, resource, namespace, name, kind, app string
		// want is: "by others" if the policies say nothing.
		want string
		// left is true if Velero leaves it out of a backup also if an action requests it.
		left bool
	}{
		"Named":           {reason: "The filter has the name.", resource: claims, namespace: "team-a", name: "shop", want: "selected"},
		"Glob":            {reason: "A name can be a glob.", resource: claims, namespace: "team-a", name: "db-1", want: "selected"},
		"Excluded":        {reason: "An excluded name wins.", resource: claims, namespace: "team-a", name: "db-old", want: "out", left: true},
		"OtherName":       {reason: "The filter lacks the name.", resource: claims, namespace: "team-a", name: "web", want: "out", left: true},
		"Unlisted":        {reason: "A kind without a filter is not found, but can be requested.", resource: "secrets", namespace: "team-a", name: "s", want: "out"},
		"FirstGlob":       {reason: "Namespaces can be globs.", resource: "secrets", namespace: "team-b", name: "s", want: "selected"},
		"OtherNamespace":  {reason: "No policy has the namespace.", resource: "secrets", namespace: "infra", name: "s", want: "by others"},
		"Label":           {reason: "One of the selectors matches.", resource: configMaps, namespace: "other", name: "c", app: "b", want: "selected"},
		"OtherLabel":      {reason: "None of the selectors matches; they don't count for what is requested.", resource: configMaps, namespace: "other", name: "c", app: "c", want: "out"},
		"Kind":            {reason: "The name of a kind that is not served yet can be given.", resource: "buckets.cloud.example.org", namespace: "team-a", name: "b", kind: "Bucket", want: "selected"},
		"Rest":            {reason: "A filter without kinds is for all others.", resource: configMaps, namespace: "rest", name: "c", app: "a", want: "selected"},
		"RestLabel":       {reason: "It has a selector.", resource: configMaps, namespace: "rest", name: "c", want: "out"},
		"RestOfListed":    {reason: "It is not for a kind that has a filter.", resource: "secrets", namespace: "rest", name: "two", app: "a", want: "out", left: true},
		"Cluster":         {reason: "Cluster-scoped kinds have filters too.", resource: "xorders.example.org", name: "shop-1", want: "selected"},
		"ClusterOther":    {reason: "The filter lacks the name.", resource: "xorders.example.org", name: "web-1", want: "out", left: true},
		"ClusterUnlisted": {reason: "A cluster-scoped kind without a filter is found as without policies.", resource: "compositions.example.org", name: "c", want: "by others"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := Object{Resource: schema.ParseGroupResource(tc.resource), Namespace: tc.namespace, Name: tc.name, Kind: tc.kind, Labels: func() map[string]string { return map[string]string{"app": tc.app} }}
			got := "by others"
			if selected, applies := p.Selects(o); applies && selected {
				got = "selected"
			} else if applies {
				got = "out"
			}
			if got != tc.want || p.Admits(o) == tc.left {
				t.Errorf("%s\ngot %q, want %q; admitted on request: %v", tc.reason, got, tc.want, p.Admits(o))
			}
		})
	}
}

func TestCheckRestore(t *testing.T) {
	cases := map[string]struct{ reason, text, want string }{
		"Version":     {reason: "Velero knows one version.", text: "version: v2", want: "v2"},
		"Volumes":     {reason: "A restore has no volume policies.", text: "version: v1\nvolumePolicies: [{}]", want: "volumePolicies"},
		"Resources":   {reason: "A restore has filters by resource of its own.", text: "version: v1\nincludeExcludePolicy: {}", want: "includeExcludePolicy"},
		"NoFilters":   {reason: "A policy without filters is refused.", text: "version: v1\nnamespacedFilterPolicies: [{namespaces: [a]}]", want: "resourceFilters"},
		"NoNamespace": {reason: "A policy without namespaces is refused.", text: "version: v1\nnamespacedFilterPolicies: [{resourceFilters: [{}]}]", want: "no namespaces"},
		"AllCluster":  {reason: "Cluster-scoped kinds must be named.", text: "version: v1\nclusterScopedFilterPolicy: {resourceFilters: [{kinds: ['*']}]}", want: "no kinds"},
		"AllNamed":    {reason: "Names need kinds.", text: "version: v1\nnamespacedFilterPolicies: [{namespaces: [a], resourceFilters: [{names: [b]}]}]", want: "has names"},
		"Both":        {reason: "One kind of selectors is taken.", text: "version: v1\nnamespacedFilterPolicies: [{namespaces: [a], resourceFilters: [{labelSelector: {matchLabels: {a: b}}, orLabelSelectors: [{}]}]}]", want: "both"},
		"Operator":    {reason: "A selector must be valid.", text: "version: v1\nnamespacedFilterPolicies: [{namespaces: [a], resourceFilters: [{labelSelector: {matchExpressions: [{key: a, operator: Like}]}}]}]", want: "Like"},
	}
	for name, tc := range cases {
		p, err := Parse(map[string]string{"p": tc.text})
		if err == nil {
			err = p.CheckRestore()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %s\nwant an error with %q, got %v", name, tc.reason, tc.want, err)
		}
	}
	for _, data := range []map[string]string{nil, {"a": "version: v1", "b": "version: v1"}, {"a": "{"}} {
		if _, err := Parse(data); err == nil {
			t.Errorf("Velero refuses %v", data)
		}
	}
}
