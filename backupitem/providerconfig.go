package backupitem

import (
	"cmp"
	"context"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// providerConfig adds the ProviderConfig of an MR. A cluster-scoped one is the platform's, as a
// Composition is, and has no credentials in it.
func (res *Resolver) providerConfig(ctx context.Context, f *found, mr *unstructured.Unstructured) {
	u := res.configOf(ctx, f, mr)
	if u == nil {
		return
	}
	if item, ok := res.item(f, u); ok && f.share(mr, u, item) {
		f.before = append(f.before, item)
	}
}

// configOf returns the ProviderConfig of an MR, nil if there is none.
func (res *Resolver) configOf(ctx context.Context, f *found, mr *unstructured.Unstructured) *unstructured.Unstructured {
	ref, _, err := unstructured.NestedStringMap(mr.Object, "spec", "providerConfigRef")
	if err != nil || ref["name"] == "" {
		return nil // An invalid reference names nothing.
	}
	u, _ := res.config(ctx, f, mr, cmp.Or(ref["kind"], "ProviderConfig"), ref["name"])

	return u
}

// config returns the config of an MR's provider, nil if there is none. ok is false if it can't be
// read, which f records. An MR does not name the group of its config. That is the MR's own or, in a
// family of providers, a parent of it (aws.upbound.io for s3.aws.upbound.io).
func (res *Resolver) config(ctx context.Context, f *found, mr *unstructured.Unstructured, kind, name string) (u *unstructured.Unstructured, ok bool) {
	gk := schema.GroupKind{Group: mr.GroupVersionKind().Group, Kind: kind}
	for more := true; more && xp.IsCustomGroup(gk.Group); _, gk.Group, more = strings.Cut(gk.Group, ".") {
		r := xp.Ref{APIVersion: gk.Group + "/v1", Kind: gk.Kind, Namespace: mr.GetNamespace(), Name: name}
		gvk, served, err := res.served(gk)
		if err != nil {
			f.addUnreadable(r, err)

			return nil, false // This group may have it, and another's of the same name would be wrong.
		}
		if !served {
			continue
		}
		r.APIVersion = gvk.GroupVersion().String()
		u, err := res.get(ctx, r)
		if err != nil {
			f.addUnreadable(r, err)

			return nil, false
		}
		if u != nil && xp.IsProviderConfig(u) {
			return u, true
		}
	}

	return nil, true
}

// credentials adds the Secret with a ProviderConfig's credentials, if the settings ask for it.
func (t *Tree) credentials(ctx context.Context, f *found, backup *velerov1.Backup) {
	ref, ok := credentialsOf(f.of)
	if !ok {
		return
	}
	settings, err := t.settings(backup)
	if err != nil {
		f.unknown = append(f.unknown, unknownSetting(f.of, "the setting "+setting.NameCredentials, err, "The backup lacks its credentials"))

		return
	}
	if settings.Credentials {
		t.resolver.credentials(ctx, f, ref)
	}
}

// credentialsOf returns the Secret with the credentials of a ProviderConfig. It is in the config's
// own namespace if that has one.
func credentialsOf(config *unstructured.Unstructured) (r xp.Ref, ok bool) {
	ref, _, err := unstructured.NestedStringMap(config.Object, "spec", "credentials", "secretRef")
	if err != nil {
		return xp.Ref{}, false
	}
	r = xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: cmp.Or(config.GetNamespace(), ref["namespace"]), Name: ref["name"]}

	return r, r.Namespace != "" && r.Name != ""
}

// credentials adds the Secret with a ProviderConfig's credentials. The user asked for it, so it is
// taken from any namespace, as connection secrets are.
func (res *Resolver) credentials(ctx context.Context, f *found, ref xp.Ref) {
	s, err := res.get(ctx, ref)
	switch {
	case err != nil:
		f.addUnreadable(ref, err)
	case s == nil:
		f.skip(f.of, ref, reason.NotLinked.Messagef("it does not exist"))
	case isExcluded(s):
		f.skip(f.of, ref, leavesOut(s))
	default:
		item := secretItem(ref)
		f.items = append(f.items, item)
		f.published[item] = true
	}
}
