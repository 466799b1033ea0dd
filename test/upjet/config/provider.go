// Package config configures how upjet makes a Crossplane provider from the Terraform provider in
// package cloud.
package config

import (
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/upjet/v2/pkg/config"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/cloud"
)

const (
	modulePath = "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet"
	features   = "internal/features"

	// The groups of both scopes.
	clusterGroup    = "upjet.example.org"
	namespacedGroup = "upjet.m.example.org"
)

// A kind is upjet's configuration of a Terraform resource.
type kind struct {
	name         config.ExternalName
	async        bool
	references   config.References
	initializers []config.NewInitializerFn
	connection   config.AdditionalConnectionDetailsFn
}

func kinds() map[string]kind {
	return map[string]kind{
		"cloud_bucket":  {name: config.NameAsIdentifier, initializers: []config.NewInitializerFn{config.TagInitializer}},
		"cloud_network": {name: config.IdentifierFromProvider, async: true},
		"cloud_gateway": {name: config.IdentifierFromProvider},
		"cloud_database": {
			name: config.IdentifierFromProvider, async: true,
			connection: func(attr map[string]any) (map[string][]byte, error) {
				endpoint, _ := attr["endpoint"].(string)

				return map[string][]byte{"endpoint": []byte(endpoint)}, nil
			},
		},
		"cloud_folder": {name: config.TemplatedStringAsIdentifier("name", "/regions/{{ .parameters.region }}/folders/{{ .external_name }}")},
		"cloud_topic": {
			name: config.TemplatedStringAsIdentifier("name", "arn:cloud:topic:{{ .setup.client_metadata.account }}:{{ .external_name }}"), async: true,
		},
		"cloud_subnet":   {name: child("network_id"), references: config.References{"network_id": {TerraformName: "cloud_network"}}},
		"cloud_registry": {name: misread(), async: true},
		"cloud_record":   {name: config.IdentifierFromProvider, async: true},
		// The external-name does not contain the zone of a cluster.
		"cloud_cluster": {name: config.IdentifierFromProvider, async: true},
		volume:          {name: config.IdentifierFromProvider, async: true},
	}
}

// child is the external-name of a resource whose ID is its parent's ID, a slash, and an ID that the
// cloud has chosen.
func child(parent string) config.ExternalName {
	name := config.IdentifierFromProvider
	name.GetIDFn = func(_ context.Context, externalName string, parameters, _ map[string]any) (string, error) {
		id, _ := parameters[parent].(string)
		if externalName == "" {
			return "", nil
		}

		return id + "/" + externalName, nil
	}
	name.GetExternalNameFn = func(state map[string]any) (string, error) {
		id, err := config.IDAsExternalName(state)
		if err != nil {
			return "", fmt.Errorf("cannot find the external-name of a child of %s: %w", parent, err)
		}

		return id[strings.LastIndex(id, "/")+1:], nil
	}
	name.IdentifierFields = []string{parent}

	return name
}

// misread is an external-name with a wrong ID: the one with which Terraform imports the resource,
// instead of the one that the resource then has.
func misread() config.ExternalName {
	name := config.IdentifierFromProvider
	name.GetIDFn = func(_ context.Context, externalName string, _, _ map[string]any) (string, error) {
		if externalName == "" {
			return "", nil
		}

		return "registries/" + externalName, nil
	}

	return name
}

// Cluster returns the configuration of the cluster-scoped kinds.
func Cluster(ctx context.Context) *config.Provider {
	return configured(ctx, clusterGroup, renamed)
}

// Namespaced returns the configuration of the namespaced kinds.
func Namespaced(ctx context.Context) *config.Provider {
	return configured(ctx, namespacedGroup, renamed)
}

// Before returns both configurations as they were before a volume had a second version.
func Before(ctx context.Context) (cluster, namespaced *config.Provider) {
	return configured(ctx, clusterGroup, former), configured(ctx, namespacedGroup, former)
}

func configured(ctx context.Context, group string, versions config.ResourceConfiguratorFn) *config.Provider {
	var sdk []string
	terraform, framework := cloud.New(), cloud.NewFramework(nil)
	for name := range terraform.ResourcesMap {
		sdk = append(sdk, name+"$")
	}
	p := config.NewProvider(schemas(ctx, terraform, framework), "cloud", modulePath, nil,
		config.WithRootGroup(group),
		config.WithShortName("upjet"), // A reference without a group of its own uses it.
		config.WithIncludeList(nil),
		config.WithTerraformProvider(terraform),
		config.WithTerraformPluginSDKIncludeList(sdk),
		config.WithTerraformPluginFrameworkProvider(framework),
		config.WithTerraformPluginFrameworkIncludeList([]string{"cloud_record$"}),
		config.WithBasePackages(config.BasePackages{APIVersion: []string{"v1beta1"}}),
		config.WithFeaturesPackage(features),
		config.WithDefaultResourceOptions(func(r *config.Resource) { configure(r); versions(r) }),
	)
	p.ConfigureResources()

	return p
}

func configure(r *config.Resource) {
	k := kinds()[r.Name]
	r.ShortGroup, r.Version = "", "v1beta1"
	r.ExternalName, r.UseAsync, r.InitializerFns = k.name, k.async, k.initializers
	if k.references != nil {
		r.References = k.references
	}
	if k.connection != nil {
		r.Sensitive.AdditionalConnectionDetailsFn = k.connection
	}
}
