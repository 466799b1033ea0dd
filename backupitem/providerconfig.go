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
	if u := res.configOf(ctx, f, mr); u != nil && res.share(f, mr, u) {
		f.before = append(f.before, f.shared...)
	}
}

// configOf returns the ProviderConfig of an MR, nil if there is none or, which f records, it can't be
// read. An MR does not name the group of its config. That is the MR's own or, in a family of
// providers, a parent of it (aws.upbound.io for s3.aws.upbound.io).
func (res *Resolver) configOf(ctx context.Context, f *found, mr *unstructured.Unstructured) *unstructured.Unstructured {
	ref := xp.Strings(mr.Object, "spec", "providerConfigRef")
	if ref["name"] == "" {
		return nil // An invalid reference names nothing.
	}
	gk := schema.GroupKind{Group: mr.GroupVersionKind().Group, Kind: cmp.Or(ref["kind"], "ProviderConfig")}
	for more := true; more && xp.IsCustomGroup(gk.Group); _, gk.Group, more = strings.Cut(gk.Group, ".") {
		r := xp.Ref{APIVersion: gk.Group + "/v1", Kind: gk.Kind, Namespace: mr.GetNamespace(), Name: ref["name"]}
		gvk, served, err := res.served(gk)
		var u *unstructured.Unstructured
		if err == nil && served {
			r.APIVersion = gvk.GroupVersion().String()
			u, err = res.get(ctx, r)
		}
		if err != nil {
			f.addUnreadable(r, err)

			return nil // This group may have it, and another's of the same name would be wrong.
		}
		if u != nil && xp.IsProviderConfig(u) {
			return u
		}
	}

	return nil
}

// credentials adds the Secret with a ProviderConfig's credentials, if the settings ask for it.
func (t *Tree) credentials(ctx context.Context, f *found, backup *velerov1.Backup) {
	ref, ok := credentialsOf(f.of)
	if !ok {
		return
	}
	settings, err := t.settings(backup)
	if err != nil {
		f.notes = append(f.notes, unknownSetting(f.of, "the setting "+setting.NameCredentials, err, "The backup lacks its credentials"))

		return
	}
	if !settings.Credentials {
		return
	}
	// The user asked for it, so it is taken from any namespace, as connection secrets are.
	if s := t.resolver.linked(ctx, f, ref, anything, reason.NotLinked.Messagef("it does not exist")); s != nil {
		f.takeSecret(f.of, ref, s)
	}
}

// credentialsOf returns the Secret with the credentials of a ProviderConfig. It is in the config's
// own namespace if that has one.
func credentialsOf(config *unstructured.Unstructured) (r xp.Ref, ok bool) {
	ref := xp.Strings(config.Object, "spec", "credentials", "secretRef")
	r = xp.RefToSecret(cmp.Or(config.GetNamespace(), ref["namespace"]), ref["name"])

	return r, r.Namespace != "" && r.Name != ""
}
