package xp

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// InputSecrets returns the Secrets that the provider of an MR reads, such as the password of a
// database, sorted and without duplicates. It finds them by the names that providers give to
// references to Secrets. A namespaced MR can name Secrets in its own namespace only. A manifest
// that provider-kubernetes applies is skipped: its references are not for the provider. For a
// Release of provider-helm the Secret of its newest revision is included, in any namespace, and for a
// Workspace of provider-terraform that with its state, if a backup has noted it: only the
// ProviderConfig names it.
func InputSecrets(mr *unstructured.Unstructured) []Ref {
	found := secretNames{in: mr.GetNamespace(), refs: map[Ref]bool{}}
	for _, field := range []string{"forProvider", "initProvider"} {
		v, _, _ := unstructured.NestedFieldNoCopy(mr.Object, "spec", field)
		collectSecrets(v, found)
	}
	if r, ok := ReleaseSecret(mr); ok {
		found.refs[r] = true
	}
	for _, r := range notedStates(mr) {
		found.refs[r] = true
	}

	return slices.SortedFunc(maps.Keys(found.refs), Ref.Compare)
}

// secretNames collects references to Secrets. If in is set, it takes only those in this namespace.
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

// isSecretReference reports whether a field holds references to Secrets, such as passwordSecretRef
// (as upjet generates it), secretKeyRef, imagePullSecretRefs.
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

// An Input is a Secret that the provider of an MR reads, as a backup knows it.
type Input struct {
	Ref

	// Exists is true if the Secret was live, Stored if the backup has it.
	Exists, Stored bool
}

// SetInputs notes the inputs of an MR on the backup's copy of it.
func SetInputs(u *unstructured.Unstructured, inputs []Input) {
	list := make([]any, len(inputs))
	for i, in := range inputs {
		list[i] = map[string]any{"namespace": in.Namespace, "name": in.Name, "exists": in.Exists, "stored": in.Stored}
	}
	setField(u, FieldInputs, list)
}

// Inputs reads the note of SetInputs. The function that it returns looks one Secret up; it returns
// false if the note does not have it.
func Inputs(mr *unstructured.Unstructured) func(secret Ref) (in Input, ok bool) {
	known := map[ID]Input{}
	for _, in := range inputs(mr) {
		known[in.ID()] = in
	}

	return func(secret Ref) (Input, bool) {
		in, ok := known[secret.ID()]

		return in, ok
	}
}

func inputs(mr *unstructured.Unstructured) []Input {
	list, _, _ := field(mr, FieldInputs)
	all := make([]Input, 0, len(list))
	for _, entry := range list {
		m, _ := entry.(map[string]any)
		in := Input{Ref: Ref{APIVersion: "v1", Kind: "Secret"}}
		in.Namespace, _ = m["namespace"].(string)
		in.Name, _ = m["name"].(string)
		in.Exists, _ = m["exists"].(bool)
		in.Stored, _ = m["stored"].(bool)
		all = append(all, in)
	}

	return all
}
