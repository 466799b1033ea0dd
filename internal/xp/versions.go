package xp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// KindCRD is the kind of CustomResourceDefinitions.
var KindCRD = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// Versions are the versions of a kind, from its CRD.
type Versions struct {
	Kind schema.GroupKind
	// Stored is the version in which the API server stores new objects. Served are the versions
	// that it serves.
	Stored string
	Served []string
	// Webhook is the Service or URL that converts between versions, "" if no conversion webhook is
	// set.
	Webhook string
	// Provider is the package or XRD that the CRD belongs to and that serves the webhook, "" if it
	// is unknown.
	Provider string
}

// VersionsFrom reads a CRD.
func VersionsFrom(crd *unstructured.Unstructured) Versions {
	v := Versions{Kind: ManagedKind(crd), Provider: providerOf(crd)}
	for _, version := range Get[[]any](crd.Object, "spec", "versions") {
		name := Get[string](version, "name")
		if Get[bool](version, "storage") {
			v.Stored = name
		}
		if Get[bool](version, "served") {
			v.Served = append(v.Served, name)
		}
	}
	if Get[string](crd.Object, "spec", "conversion", "strategy") == "Webhook" {
		client := Get[map[string]any](crd.Object, "spec", "conversion", "webhook", "clientConfig")
		v.Webhook = Get[string](client, "url")
		if service := Get[string](client, "service", "name"); service != "" {
			v.Webhook = "Service " + Get[string](client, "service", "namespace") + "/" + service
		}
	}

	return v
}

// providerOf returns the package or XRD that a CRD belongs to. A package owns the CRD; its revision
// controls it.
func providerOf(crd *unstructured.Unstructured) string {
	owners := crd.GetOwnerReferences()
	for _, kind := range []string{"Provider", "Configuration", "ProviderRevision", "ConfigurationRevision", "CompositeResourceDefinition"} {
		for _, o := range owners {
			if o.Kind == kind && IsCrossplaneGroup(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).Group) {
				return o.Kind + " " + o.Name
			}
		}
	}

	return ""
}

// Serves reports whether the API server serves a version of the kind.
func (v Versions) Serves(version string) bool { return slices.Contains(v.Served, version) }

// Converts reports whether the webhook has to convert an object that is created in a version.
func (v Versions) Converts(version string) bool { return v.Webhook != "" && version != v.Stored }

// Server returns, for messages, what has to serve the webhook.
func (v Versions) Server() string {
	return cmp.Or(v.Provider, fmt.Sprintf("what installs the CRD of %s", v.Kind))
}

// IsConversion reports whether an error is that of a failed conversion webhook
// (apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go). Such an error does not
// mean that there are no objects.
func IsConversion(err error) bool {
	return err != nil && strings.Contains(err.Error(), "conversion webhook for ")
}
