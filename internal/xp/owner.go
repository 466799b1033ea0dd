package xp

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// VerifyOwner returns why the live owner does not own the item, "" if it does. A tenant can write
// any owner reference into an object, so a reference in a backup proves nothing. The owner must
// also point at the item (P7):
//   - An XR lists a composed resource in its resourceRefs.
//   - A CompositionRevision has its Composition's name in a label that Crossplane writes.
//   - A package revision has its package's name in a label that Crossplane writes.
//   - An XR or MR names the Secret in which it publishes.
//
// itemNamespace is the namespace that the item is restored to.
func VerifyOwner(owner, item *unstructured.Unstructured, itemNamespace string) string {
	switch {
	case IsConnectionSecret(item):
		s, ok := SecretRef(owner)
		if !ok || s.Name != item.GetName() || s.Namespace != itemNamespace {
			return "the owner does not publish its connection details in it"
		}
	case IsRevision(item):
		if owner.GetKind() != "Composition" || Label(item, LabelCompositionName) != owner.GetName() {
			return "it is not labelled as a revision of it"
		}
	case IsPackageRevision(item):
		if owner.GroupVersionKind().Group != GroupPackage || Label(item, LabelPackage) != owner.GetName() {
			return "it is not labelled as a revision of it"
		}
	default:
		refs, err := CompositeFrom(owner).ResourceRefs()
		if err != nil {
			return err.Error()
		}
		want := RefTo(item)
		want.Namespace = itemNamespace
		if !slices.ContainsFunc(refs, func(r Ref) bool { return r.ID() == want.ID() }) {
			return "the owner does not list it in its resourceRefs"
		}
	}

	return ""
}

// RenameOwners replaces the UIDs of owners in the managedFields of an object, which Velero restores
// as they are in the backup. uids maps old to new. An owner without a new UID is removed.
func RenameOwners(u *unstructured.Unstructured, uids map[types.UID]types.UID) {
	entries, _, err := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
	if err != nil || len(entries) == 0 {
		return
	}
	for _, entry := range entries {
		metadata := Get[map[string]any](entry, "fieldsV1", "f:metadata")
		if !Has(metadata, "f:ownerReferences") {
			continue
		}
		renamed := renameKeys(Get[map[string]any](metadata, "f:ownerReferences"), uids)
		metadata["f:ownerReferences"] = renamed
		if len(renamed) == 0 {
			delete(metadata, "f:ownerReferences")
		}
		if len(metadata) == 0 { // An empty f:metadata would mean that the manager owns metadata itself.
			delete(Get[map[string]any](entry, "fieldsV1"), "f:metadata")
		}
	}
	_ = unstructured.SetNestedSlice(u.Object, entries, "metadata", "managedFields") // The path was just read.
}

// renameKeys renames the keys of an associative list in managedFields, such as k:{"uid":"..."}. The
// list itself has the key ".", which does not stay alone.
func renameKeys(fields map[string]any, uids map[types.UID]types.UID) map[string]any {
	renamed := map[string]any{}
	for key, value := range fields {
		var id struct {
			UID types.UID `json:"uid"`
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(key, "k:")), &id); err != nil {
			continue
		}
		if uid, ok := uids[id.UID]; ok {
			renamed[`k:{"uid":"`+string(uid)+`"}`] = value
		}
	}
	if list, ok := fields["."]; ok && len(renamed) > 0 {
		renamed["."] = list
	}

	return renamed
}

// MostOwners is how many owner references of an object count. Each can take a request, and a tenant
// can write thousands. What Crossplane composes has one or two.
const MostOwners = 64

// OwnerReferences returns the owner references of u that count: the first ones, and the
// controller's. more is how many others there are.
func OwnerReferences(u *unstructured.Unstructured) (refs []metav1.OwnerReference, more int) {
	refs = u.GetOwnerReferences()
	if more = len(refs) - MostOwners; more <= 0 {
		return refs, 0
	}
	n := slices.IndexFunc(refs, func(r metav1.OwnerReference) bool { return r.Controller != nil && *r.Controller })
	if n >= MostOwners {
		refs[MostOwners-1] = refs[n]
	}

	return slices.Clone(refs[:MostOwners]), more
}

// Owners returns the owners of an object, from its owner references. Each has the namespace of the
// object: a namespaced owner is in it.
func Owners(u *unstructured.Unstructured) []Ref {
	var refs []Ref
	owners, _ := OwnerReferences(u)
	for _, o := range owners {
		refs = append(refs, Ref{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: u.GetNamespace(), Name: o.Name})
	}

	return refs
}

// Controller returns a copy of u's controller reference. It returns false if there is none.
func Controller(u *unstructured.Unstructured) (metav1.OwnerReference, bool) {
	c := metav1.GetControllerOf(u)
	if c == nil {
		return metav1.OwnerReference{}, false
	}

	return *c, true
}
