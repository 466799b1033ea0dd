package backupitem

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// providerConfig adds the ProviderConfig that an MR is reconciled with. An MR does not say which group its kind is in: it is the MR's own or, in a
// family of providers, what is left of that without its first parts (s3.aws.upbound.io has that of aws.upbound.io). A
// cluster-scoped one is the platform's, as a Composition is, and has no credentials in it.
func (l *Links) providerConfig(ctx context.Context, f *found, mr *unstructured.Unstructured) error {
	ref, _, err := unstructured.NestedStringMap(mr.Object, "spec", "providerConfigRef")
	if err != nil || ref["name"] == "" {
		return nil //nolint:nilerr // What is not a reference names nothing.
	}
	gk := schema.GroupKind{Group: mr.GroupVersionKind().Group, Kind: ref["kind"]}
	if gk.Kind == "" {
		gk.Kind = "ProviderConfig"
	}
	for ok := true; ok; _, gk.Group, ok = strings.Cut(gk.Group, ".") {
		if !xp.IsCustom(gk.Group) {
			return nil
		}
		gvk, served, err := l.reader.Served(gk)
		if err != nil {
			return err
		}
		if !served {
			continue
		}
		r := xp.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: mr.GetNamespace(), Name: ref["name"]}
		u, err := l.get(ctx, r)
		if err != nil {
			return err
		}
		if u == nil || !xp.IsProviderConfig(u) {
			continue
		}
		item, err := l.item(u)
		if err != nil {
			return err
		}
		f.shared, f.before = append(f.shared, item), append(f.before, item)

		return nil
	}

	return nil
}

// credentials adds the Secret that a ProviderConfig takes its credentials from, in its own namespace if it has one. Somebody asked for it, so it is taken
// wherever it is, as connection secrets are.
func (l *Links) credentials(f *found, config *unstructured.Unstructured) {
	ref, _, err := unstructured.NestedStringMap(config.Object, "spec", "credentials", "secretRef")
	if err != nil || ref["name"] == "" {
		return
	}
	namespace := ref["namespace"]
	if own := config.GetNamespace(); own != "" {
		namespace = own
	}
	if namespace == "" {
		return
	}
	item := xp.Item{GroupResource: schema.GroupResource{Resource: "secrets"}, Namespace: namespace, Name: ref["name"]}
	f.items = append(f.items, item)
	f.published[item] = true
}
