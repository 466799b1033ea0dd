package backupitem

import (
	"context"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// stored adds the StoreConfig with which an object publishes and, if that publishes in this
// cluster, the Secret. The Secret must have the label with the object's UID, since a user can name
// any Secret.
func (res *Resolver) stored(ctx context.Context, f *found, u *unstructured.Unstructured) {
	name, store, ok := xp.StoreSecret(u)
	if !ok {
		return
	}
	config, ok := res.storeConfig(ctx, f, u, store)
	if !ok {
		return
	}
	if config == nil {
		f.skip(u, xp.Ref{Kind: xp.KindStoreConfig, Name: store}, reason.StoreConfigNotFound.Messagef(
			"it does not exist, so nothing is published with it. Create it; or, if External Secret Stores are not enabled, remove spec.publishConnectionDetailsTo"))

		return
	}
	if item, ok := res.item(f, config); ok && f.share(u, config, item) {
		f.before = append(f.before, item)
	}
	namespace, outside := xp.StoreNamespace(config)
	if outside != "" {
		f.outside = xp.RefTo(config)
		f.skip(u, f.outside, reason.SecretStoreOutside.Messagef("it publishes in %s, which no backup of this cluster has. If that refuses the restored object as "+
			"not its owner, set the tag %s of %s there to the object's new UID", outside, xp.LabelOwnerUID, name))

		return
	}
	if u.GetNamespace() != "" {
		namespace = u.GetNamespace()
	}
	res.storedIn(ctx, f, u, xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name})
}

// storedIn adds the Secret.
func (res *Resolver) storedIn(ctx context.Context, f *found, u *unstructured.Unstructured, ref xp.Ref) {
	s, err := res.listed(ctx, f, ref, metav1.ListOptions{LabelSelector: xp.LabelOwnerUID})
	switch {
	case err != nil:
		f.addUnreadable(ref, err)
	case s == nil && u.GetNamespace() != "": // It is not published yet.
	case s == nil || !xp.OwnsStored(u, s):
		f.skip(u, ref, reason.NotLinked.Messagef("it does not exist, or its label %s is not the UID of %s", xp.LabelOwnerUID, xp.String(u)))
	case !leavesOut(s).IsZero():
		f.skip(u, ref, leavesOut(s))
	default:
		if item, ok := res.item(f, s); ok {
			f.items, f.stored = append(f.items, item), ref
			f.published[item] = true
		}
	}
}

// storeConfig returns the StoreConfig with which an object publishes, as config does: Crossplane's,
// or the MR's provider's.
func (res *Resolver) storeConfig(ctx context.Context, f *found, u *unstructured.Unstructured, name string) (config *unstructured.Unstructured, ok bool) {
	if !xp.IsComposite(u) && !xp.IsClaim(u) {
		return res.config(ctx, f, u, xp.KindStoreConfig, name)
	}
	r := xp.Ref{APIVersion: xp.GroupSecrets + "/v1alpha1", Kind: xp.KindStoreConfig, Name: name}
	config, err := res.get(ctx, r)
	if err != nil {
		f.addUnreadable(r, err)
	}

	return config, err == nil
}

// noteStored writes onto the stored copy which Secret with the object's published details the
// filters leave in the backup.
func (f *found) noteStored(u *unstructured.Unstructured, backup *velerov1.Backup) {
	secret := f.stored
	item := secretItem(secret)
	if !slices.Contains(f.items, item) || !takesSecrets(backup) {
		secret = xp.Ref{}
	}
	xp.SetStored(u, secret, f.outside)
}
