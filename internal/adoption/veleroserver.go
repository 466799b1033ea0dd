package adoption

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// containerVelero is the name of the server's container, whatever installs Velero: "velero install",
// Velero's Helm chart and OADP.
const containerVelero = "velero"

// WithoutPlugin returns the Deployment of Velero's server if none of the given ones has an init
// container that brings this plugin. ok is false if one has, or if there is no server among them.
// An init container counts if its name or image names Crossplane: a mirror can rename the image.
func WithoutPlugin(deployments []*unstructured.Unstructured) (server xp.Ref, ok bool) {
	for _, u := range deployments {
		isServer := func(c map[string]any) bool { return c["name"] == containerVelero }
		if !slices.ContainsFunc(xp.Maps(u.Object, "spec", "template", "spec", "containers"), isServer) {
			continue
		}
		if slices.ContainsFunc(xp.Maps(u.Object, "spec", "template", "spec", "initContainers"), namesCrossplane) {
			return xp.Ref{}, false
		}
		server, ok = xp.RefTo(u), true
	}

	return server, ok
}

func namesCrossplane(container map[string]any) bool {
	name, _ := container["name"].(string)
	image, _ := container["image"].(string)

	return strings.Contains(name+" "+image, "crossplane")
}
