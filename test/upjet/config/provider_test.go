package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExternalNames checks the ID that upjet makes of an external-name, and the external-name that
// it takes from Terraform's ID.
func TestExternalNames(t *testing.T) {
	const made = "net-1"

	cases := map[string]struct {
		reason     string
		resource   string
		name       string
		parameters map[string]any
		id         string // The ID that upjet makes.
		has        string // The ID that Terraform has.
	}{
		"Chosen":   {reason: "The creator chooses it.", resource: "cloud_bucket", name: "b", id: "b", has: "b"},
		"Assigned": {reason: "The cloud chooses it.", resource: "cloud_network", name: made, id: made, has: made},
		"Unborn":   {reason: "There is no ID before there is a name.", resource: "cloud_network", has: ""},
		"Templated": {
			reason: "It is part of a longer ID.", resource: "cloud_folder", name: "f", parameters: map[string]any{"region": "here"},
			id: "/regions/here/folders/f", has: "/regions/here/folders/f",
		},
		"ARN": {reason: "So it is here.", resource: "cloud_topic", name: "t", id: "arn:cloud:topic:123456789012:t", has: "arn:cloud:topic:123456789012:t"},
		"Child": {
			reason: "The ID has that of the parent in it.", resource: "cloud_subnet", name: made, parameters: map[string]any{"network_id": "net-0"},
			id: "net-0/net-1", has: "net-0/net-1",
		},
		"UnbornChild": {
			reason: "Without a name there is no ID, for any parent.", resource: "cloud_subnet", parameters: map[string]any{"network_id": "net-0"}, has: "",
		},
		"Misread": {reason: "The ID that upjet makes is not the one that Terraform has.", resource: "cloud_registry", name: made, id: "registries/net-1", has: made},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := Namespaced(t.Context()).Resources[tc.resource].ExternalName
			setup := map[string]any{"client_metadata": map[string]string{"account": "123456789012"}}

			id, err := n.GetIDFn(t.Context(), tc.name, tc.parameters, setup)
			if diff := cmp.Diff(tc.id, id); diff != "" || err != nil {
				t.Errorf("\n%s\nn.GetIDFn(...): %v, -want, +got:\n%s", tc.reason, err, diff)
			}

			if tc.has == "" {
				return
			}

			got, err := n.GetExternalNameFn(map[string]any{"id": tc.has})
			if diff := cmp.Diff(tc.name, got); diff != "" || err != nil {
				t.Errorf("\n%s\nn.GetExternalNameFn(...): %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

// Both scopes have the same kinds, in different groups.
func TestScopes(t *testing.T) {
	cluster, namespaced := Cluster(t.Context()), Namespaced(t.Context())
	for name := range kinds() {
		if cluster.Resources[name] == nil || namespaced.Resources[name] == nil {
			t.Errorf("there is no %s in both scopes", name)
		}
	}
	if diff := cmp.Diff([]string{clusterGroup, namespacedGroup}, []string{cluster.RootGroup, namespaced.RootGroup}); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
