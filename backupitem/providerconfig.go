package backupitem

import (
	"cmp"
	"context"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// providerConfig adds the ProviderConfig that an MR is reconciled with. An MR does not say which group its kind is in: it is the MR's own or, in a
// family of providers, what is left of that without its first parts (s3.aws.upbound.io has that of aws.upbound.io). A
// cluster-scoped one is the platform's, as a Composition is, and has no credentials in it.
func (l *Links) providerConfig(ctx context.Context, f *found, mr *unstructured.Unstructured) {
	ref, _, err := unstructured.NestedStringMap(mr.Object, "spec", "providerConfigRef")
	if err != nil || ref["name"] == "" {
		return // What is not a reference names nothing.
	}
	gk := schema.GroupKind{Group: mr.GroupVersionKind().Group, Kind: ref["kind"]}
	if gk.Kind == "" {
		gk.Kind = "ProviderConfig"
	}
	for ok := true; ok && xp.IsCustom(gk.Group); _, gk.Group, ok = strings.Cut(gk.Group, ".") {
		r := xp.Ref{APIVersion: gk.Group + "/v1", Kind: gk.Kind, Namespace: mr.GetNamespace(), Name: ref["name"]}
		gvk, served, err := l.served(gk)
		if err != nil {
			f.lose(r, err)

			return // It may be the one, and another of its name another's.
		}
		if !served {
			continue
		}
		r.APIVersion = gvk.GroupVersion().String()
		u, err := l.get(ctx, r)
		if err != nil {
			f.lose(r, err)

			return
		}
		if u == nil || !xp.IsProviderConfig(u) {
			continue
		}
		if item, ok := l.item(f, u); ok && f.share(mr, u, item) {
			f.before = append(f.before, item)
		}

		return
	}
}

// credentials adds the Secret that a ProviderConfig takes its credentials from, if the settings ask for it.
func (t *Tree) credentials(ctx context.Context, f *found, backup *velerov1.Backup) {
	ref, ok := credentialsOf(f.of)
	if !ok {
		return
	}
	settings, err := t.settings(backup)
	if err != nil {
		f.unknown = append(f.unknown, gap{
			of: xp.RefTo(f.of), what: "the setting " + setting.NameCredentials,
			why: err.Error() + ". It is stored without its credentials, which is what there is without the setting. Correct the settings, then back up again",
		})

		return
	}
	if settings.Credentials {
		t.links.credentials(ctx, f, ref)
	}
}

// credentialsOf returns the Secret that a ProviderConfig takes its credentials from, in its own namespace if it has one.
func credentialsOf(config *unstructured.Unstructured) (r xp.Ref, ok bool) {
	ref, _, err := unstructured.NestedStringMap(config.Object, "spec", "credentials", "secretRef")
	if err != nil {
		return xp.Ref{}, false
	}
	r = xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: cmp.Or(config.GetNamespace(), ref["namespace"]), Name: ref["name"]}

	return r, r.Namespace != "" && r.Name != ""
}

// credentials adds the Secret with a ProviderConfig's credentials. Somebody asked for it, so it is taken wherever it is, as connection secrets are.
func (l *Links) credentials(ctx context.Context, f *found, ref xp.Ref) {
	s, err := l.get(ctx, ref)
	switch {
	case err != nil:
		f.lose(ref, err)
	case s == nil:
		f.skip(f.of, ref, "it does not exist")
	case isKeptOut(s):
		f.skip(f.of, ref, leavesOut(s))
	default:
		item := xp.Item{GroupResource: schema.GroupResource{Resource: "secrets"}, Namespace: ref.Namespace, Name: ref.Name}
		f.items = append(f.items, item)
		f.published[item] = true
	}
}
