package xp

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// External Secret Stores are an alpha feature that Crossplane has up to v1.20: what an object
// publishes goes where a StoreConfig says.

// KindStoreConfig is what Crossplane and providers call where they publish connection details.
const KindStoreConfig = "StoreConfig"

// StoreSecret returns under which name u publishes its connection details in a secret store, and
// the name of the StoreConfig; ok is false if it doesn't.
func StoreSecret(u *unstructured.Unstructured) (name, config string, ok bool) {
	to, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "publishConnectionDetailsTo")
	m, _ := to.(map[string]any)
	name, _ = m["name"].(string)
	ref, _ := m["configRef"].(map[string]any)
	if config, _ = ref["name"].(string); config == "" {
		config = "default" // As its CRD says.
	}

	return name, config, name != "" && !hasV2Schema(u)
}

// StoreNamespace returns the namespace in which a StoreConfig has the connection details of
// cluster-scoped objects published, as Secrets of this cluster; outside says what it publishes to
// instead, "" if that is it.
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

// IsStored reports whether u is a Secret that somebody has published in with a secret store. It can
// be of any type.
func IsStored(u *unstructured.Unstructured) bool {
	return isCore(u, "Secret") && Label(u, LabelOwnerUID) != ""
}

// OwnsStored reports whether a Secret is what the live object u has published with a secret store.
// It has no owner reference: its owner can be in another cluster (crossplane-runtime v1
// pkg/connection, SecretToWriteMustBeOwnedBy).
func OwnsStored(u, secret *unstructured.Unstructured) bool {
	return u.GetUID() != "" && isCore(secret, "Secret") && Label(secret, LabelOwnerUID) == string(u.GetUID())
}

// SetStored writes onto the backup's copy of an object where what it publishes with a secret store
// is: which Secret of the backup, or the StoreConfig of a store that is not in this cluster. It
// does so as SetRestoreFirst does, and of zero values writes nothing.
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

// Stored reads which Secret SetStored wrote; ok is false if none.
func Stored(u *unstructured.Unstructured) (secret Ref, ok bool) {
	m := storedField(u)
	namespace, _ := m["namespace"].(string)
	name, _ := m["name"].(string)
	if namespace == "" || name == "" || !IsValidName(namespace, name) || u.GetNamespace() != "" && u.GetNamespace() != namespace {
		return Ref{}, false
	}

	return Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}, true
}

// StoredOutside reads which StoreConfig SetStored wrote; "" if none.
func StoredOutside(u *unstructured.Unstructured) string {
	config, _ := storedField(u)["storeConfig"].(string)

	return config
}

func storedField(u *unstructured.Unstructured) map[string]any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", FieldStored)
	m, _ := v.(map[string]any)

	return m
}
