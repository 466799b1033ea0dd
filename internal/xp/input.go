package xp

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// InputSecrets returns the Secrets that a cluster-scoped MR has its provider read, such as the password of a database: what in its spec is called as providers
// call references to Secrets, each once and in order. Those of a namespaced MR are in its own namespace. What provider-kubernetes manages names what that
// needs, and not what the provider reads.
func InputSecrets(mr *unstructured.Unstructured) []Ref {
	if mr.GetNamespace() != "" {
		return nil
	}
	found := map[Ref]bool{}
	for _, field := range []string{"forProvider", "initProvider"} {
		v, _, _ := unstructured.NestedFieldNoCopy(mr.Object, "spec", field)
		collectSecrets(v, found)
	}

	return slices.SortedFunc(maps.Keys(found), Ref.Compare)
}

func collectSecrets(v any, into map[Ref]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if name == "manifest" {
				continue
			}
			if isSecretReference(name) {
				addSecrets(value, into)
			}
			collectSecrets(value, into)
		}
	case []any:
		for _, entry := range v {
			collectSecrets(entry, into)
		}
	}
}

// isSecretReference tells whether a field holds references to Secrets: passwordSecretRef, as upjet generates it, secretKeyRef, imagePullSecretRefs.
func isSecretReference(field string) bool {
	lower := strings.TrimSuffix(strings.ToLower(field), "s")

	return strings.HasSuffix(lower, "secretref") || strings.HasSuffix(lower, "secretkeyref")
}

func addSecrets(v any, into map[Ref]bool) {
	entries, ok := v.([]any)
	if !ok {
		entries = []any{v}
	}
	for _, entry := range entries {
		m, _ := entry.(map[string]any)
		namespace, _ := m["namespace"].(string)
		name, _ := m["name"].(string)
		if namespace != "" && CanExist(namespace, name) {
			into[Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}] = true
		}
	}
}
