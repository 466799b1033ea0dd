package xp

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Field managers of Crossplane's package manager (crossplane internal/controller/pkg/runtime): the
// name of its program, and from v2.4 on one of its own.
const (
	managerCrossplane = "crossplane"
	managerRuntime    = "pkg.crossplane.io/runtime"
)

// AddedSettings returns, for messages, what others than Crossplane have added to the ServiceAccount
// of a package, such as the cloud role of a provider. It returns nil for any other object.
// Crossplane keeps these settings, but does not make them again.
func AddedSettings(u *unstructured.Unstructured) []string {
	if c, _ := Controller(u); !isCore(u, "ServiceAccount") || !isPackageRevisionKind(schema.FromAPIVersionAndKind(c.APIVersion, c.Kind)) {
		return nil
	}
	var added []string
	for _, of := range []struct{ field, name string }{{"annotations", "annotation"}, {"labels", "label"}} {
		entries, _, _ := unstructured.NestedStringMap(u.Object, "metadata", of.field)
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			if !isToolKey(key) && !isWrittenByCrossplane(u, of.field, key) {
				added = append(added, of.name+" "+key)
			}
		}
	}
	for _, of := range []struct{ field, name string }{{"imagePullSecrets", "imagePullSecret"}, {"secrets", "secret"}} {
		entries, _ := u.Object[of.field].([]any)
		for _, entry := range entries {
			m, _ := entry.(map[string]any)
			name, _ := m["name"].(string)
			// Kubernetes and OpenShift make these for each ServiceAccount.
			if name != "" && !strings.HasPrefix(name, u.GetName()+"-token-") && !strings.HasPrefix(name, u.GetName()+"-dockercfg-") {
				added = append(added, of.name+" "+name)
			}
		}
	}
	if _, ok := u.Object["automountServiceAccountToken"].(bool); ok {
		added = append(added, "automountServiceAccountToken")
	}

	return added
}

// IsNamedAfterRevision reports whether the ServiceAccount of a package has the name of its
// revision. Crossplane chooses that name unless a DeploymentRuntimeConfig has another. The
// ServiceAccount of another revision then has another name.
func IsNamedAfterRevision(serviceAccount *unstructured.Unstructured) bool {
	c, ok := Controller(serviceAccount)

	return ok && c.Name == serviceAccount.GetName()
}

// isToolKey reports whether Crossplane, Velero or kubectl keeps its own records in a label or
// annotation.
func isToolKey(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	for _, tool := range []string{"crossplane.io", "velero.io", "kubectl.kubernetes.io"} {
		if domain == tool || strings.HasSuffix(domain, "."+tool) {
			return true
		}
	}

	return false
}

// isWrittenByCrossplane reports whether Crossplane manages a label or annotation. It writes those
// of a DeploymentRuntimeConfig.
func isWrittenByCrossplane(u *unstructured.Unstructured, field, key string) bool {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
	entries, _ := v.([]any)

	return slices.ContainsFunc(entries, func(entry any) bool {
		m, _ := entry.(map[string]any)
		if m["manager"] != managerCrossplane && m["manager"] != managerRuntime {
			return false
		}
		_, writes, _ := unstructured.NestedFieldNoCopy(m, "fieldsV1", "f:metadata", "f:"+field, "f:"+key)

		return writes
	})
}
