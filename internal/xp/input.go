package xp

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// InputSecrets returns the Secrets that an MR has its provider read, such as the password of a
// database: what in its spec is called as providers call references to Secrets, each once and in
// order. Those of a namespaced MR are in its own namespace, and it can name no other. What
// provider-kubernetes manages names what that needs, and not what the provider reads. Of a Release
// of Helm it is also the Secret that provider-helm knows its release by, in whatever namespace that
// is.
func InputSecrets(mr *unstructured.Unstructured) []Ref {
	found := secretNames{in: mr.GetNamespace(), refs: map[Ref]bool{}}
	for _, field := range []string{"forProvider", "initProvider"} {
		v, _, _ := unstructured.NestedFieldNoCopy(mr.Object, "spec", field)
		collectSecrets(v, found)
	}
	if r, ok := ReleaseSecret(mr); ok {
		found.refs[r] = true
	}

	return slices.SortedFunc(maps.Keys(found.refs), Ref.Compare)
}

// secretNames are references to Secrets, in the given namespace only if there is one.
type secretNames struct {
	in   string
	refs map[Ref]bool
}

func collectSecrets(v any, into secretNames) {
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

// isSecretReference reports whether a field holds references to Secrets: passwordSecretRef, as
// upjet generates it, secretKeyRef, imagePullSecretRefs.
func isSecretReference(field string) bool {
	lower := strings.TrimSuffix(strings.ToLower(field), "s")

	return strings.HasSuffix(lower, "secretref") || strings.HasSuffix(lower, "secretkeyref")
}

func addSecrets(v any, into secretNames) {
	entries, ok := v.([]any)
	if !ok {
		entries = []any{v}
	}
	for _, entry := range entries {
		m, _ := entry.(map[string]any)
		name, _ := m["name"].(string)
		namespace, named := m["namespace"].(string)
		if !named {
			namespace = into.in
		}
		if namespace != "" && (into.in == "" || into.in == namespace) && IsValidName(namespace, name) {
			into.refs[Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}] = true
		}
	}
}

// An Input is what a backup knows of a Secret that an MR has its provider read.
type Input struct {
	Ref

	// Exists says that there was one, and Stored that the backup has it.
	Exists, Stored bool
}

// SetInputs writes what a backup knows of the Secrets that the provider of an MR reads onto its
// copy of that, as SetRestoreFirst does.
func SetInputs(u *unstructured.Unstructured, inputs []Input) {
	list := make([]any, len(inputs))
	for i, in := range inputs {
		list[i] = map[string]any{"namespace": in.Namespace, "name": in.Name, "exists": in.Exists, "stored": in.Stored}
	}
	setField(u, FieldInputs, list)
}

// Inputs reads what SetInputs wrote of those Secrets that the MR itself names; ok is false of one
// if nothing is known of it.
func Inputs(mr *unstructured.Unstructured) func(secret Ref) (in Input, ok bool) {
	list, _, _ := field(mr, FieldInputs)
	known := map[ID]Input{}
	for _, entry := range list {
		m, _ := entry.(map[string]any)
		in := Input{Ref: Ref{APIVersion: "v1", Kind: "Secret"}}
		in.Namespace, _ = m["namespace"].(string)
		in.Name, _ = m["name"].(string)
		in.Exists, _ = m["exists"].(bool)
		in.Stored, _ = m["stored"].(bool)
		known[in.ID()] = in
	}

	return func(secret Ref) (Input, bool) {
		in, ok := known[secret.ID()]

		return in, ok
	}
}
