package xp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// KindCRD is that of Kubernetes.
var KindCRD = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// Versions are what a CRD says of the versions of its kind.
type Versions struct {
	Kind schema.GroupKind
	// Stored is the version in which the API server stores new objects, and Served are those in
	// which it has any.
	Stored string
	Served []string
	// Webhook names what converts between them: the Service or the URL; "" if nothing has to be
	// asked for that.
	Webhook string
	// Provider names what the CRD belongs to, which serves the webhook; "" if nothing says so.
	Provider string
}

// VersionsFrom reads a CRD.
func VersionsFrom(crd *unstructured.Unstructured) Versions {
	text := func(fields ...string) string {
		s, _, _ := unstructured.NestedString(crd.Object, append([]string{"spec"}, fields...)...)

		return s
	}
	v := Versions{Kind: schema.GroupKind{Group: text("group"), Kind: text("names", "kind")}, Provider: providerOf(crd)}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, entry := range versions {
		m, _ := entry.(map[string]any)
		name, _ := m["name"].(string)
		if m["storage"] == true {
			v.Stored = name
		}
		if m["served"] == true {
			v.Served = append(v.Served, name)
		}
	}
	if text("conversion", "strategy") != "Webhook" {
		return v
	}
	if service := text("conversion", "webhook", "clientConfig", "service", "name"); service != "" {
		v.Webhook = "Service " + text("conversion", "webhook", "clientConfig", "service", "namespace") + "/" + service
	} else {
		v.Webhook = text("conversion", "webhook", "clientConfig", "url")
	}

	return v
}

// providerOf names the package or XRD that a CRD belongs to. A package owns it beside the revision
// that controls it.
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

// Serves reports whether the API server has objects of the kind in a version.
func (v Versions) Serves(version string) bool { return slices.Contains(v.Served, version) }

// Converts reports whether the webhook has to convert what is created in a version.
func (v Versions) Converts(version string) bool { return v.Webhook != "" && version != v.Stored }

// Server names who is to serve the webhook.
func (v Versions) Server() string {
	return cmp.Or(v.Provider, fmt.Sprintf("what installs the CRD of %s", v.Kind))
}

// IsConversion reports whether an error says that objects could not be converted between the
// versions of their kind (apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go).
// It says nothing of whether there are any.
func IsConversion(err error) bool {
	return err != nil && strings.Contains(err.Error(), "conversion webhook for ")
}
