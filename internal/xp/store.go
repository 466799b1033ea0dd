package xp

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// External Secret Stores are an alpha feature of Crossplane up to v1.20: a StoreConfig decides
// where an object publishes.

// KindStoreConfig is the kind of Crossplane and of providers that configures a secret store.
const KindStoreConfig = "StoreConfig"

// StoreSecret returns the name under which u publishes its connection details in a secret store,
// and the name of the StoreConfig. It returns false if u does not use a secret store.
func StoreSecret(u *unstructured.Unstructured) (name, config string, ok bool) {
	to, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "publishConnectionDetailsTo")
	m, _ := to.(map[string]any)
	name, _ = m["name"].(string)
	ref, _ := m["configRef"].(map[string]any)
	if config, _ = ref["name"].(string); config == "" {
		config = "default" // The default in the CRD.
	}

	return name, config, name != "" && !hasV2Schema(u)
}

// StoreNamespace returns the namespace in which a StoreConfig has cluster-scoped objects publish,
// as Secrets of this cluster. If the store is elsewhere, it returns a description of the store in
// outside.
func StoreNamespace(config *unstructured.Unstructured) (namespace, outside string) {
	kind, _, _ := unstructured.NestedString(config.Object, "spec", "type")
	if kind != "" && kind != "Kubernetes" {
		return "", fmt.Sprintf("a store of type %q", kind)
	}
	if _, remote, _ := unstructured.NestedFieldNoCopy(config.Object, "spec", "kubernetes"); remote {
		return "", "the Secrets of another cluster"
	}
	namespace, _, _ = unstructured.NestedString(config.Object, "spec", "defaultScope")

	return namespace, ""
}

// IsStored reports whether u is a Secret that a secret store has written. It can be of any type.
func IsStored(u *unstructured.Unstructured) bool {
	return isCore(u, "Secret") && Label(u, LabelOwnerUID) != ""
}

// OwnsStored reports whether the live object u has published the Secret with a secret store. Such a
// Secret has no owner reference: its owner can be in another cluster (crossplane-runtime v1
// pkg/connection, SecretToWriteMustBeOwnedBy).
func OwnsStored(u, secret *unstructured.Unstructured) bool {
	return u.GetUID() != "" && isCore(secret, "Secret") && Label(secret, LabelOwnerUID) == string(u.GetUID())
}

// SetStored notes on the backup's copy of an object where it publishes with a secret store: the
// Secret in the backup, or the StoreConfig of a store that is not in this cluster. Zero values
// write no note.
func SetStored(u *unstructured.Unstructured, secret, outside Ref) {
	metadata, ok := u.Object["metadata"].(map[string]any)
	switch {
	case !ok: // Every object that Velero backs up has metadata.
	case secret != Ref{}:
		metadata[FieldStored] = map[string]any{"namespace": secret.Namespace, "name": secret.Name}
	case outside != Ref{}:
		metadata[FieldStored] = map[string]any{"storeConfig": outside.String()}
	default:
		delete(metadata, FieldStored)
	}
}

// Stored reads the Secret from the note of SetStored. It returns false if there is none.
func Stored(u *unstructured.Unstructured) (secret Ref, ok bool) {
	m := storedField(u)
	namespace, _ := m["namespace"].(string)
	name, _ := m["name"].(string)
	if namespace == "" || name == "" || !IsValidName(namespace, name) || u.GetNamespace() != "" && u.GetNamespace() != namespace {
		return Ref{}, false
	}

	return Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}, true
}

// StoredOutside reads the StoreConfig from the note of SetStored, "" if there is none.
func StoredOutside(u *unstructured.Unstructured) string {
	config, _ := storedField(u)["storeConfig"].(string)

	return config
}

func storedField(u *unstructured.Unstructured) map[string]any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", FieldStored)
	m, _ := v.(map[string]any)

	return m
}
