package restoreitem

import (
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// hasStored reports whether the backup has what the item published with a secret store.
func (i *item) hasStored() bool {
	_, ok := xp.Stored(i.original)

	return ok
}

// awaitStored makes the hold write the item's new UID on what it published with a secret store. XRs
// and MRs also wait for that. Velero restores the Secret with the old UID, and nothing else shows
// whose it is.
func (a *Adopt) awaitStored(i *item, h *adoption.Hold) {
	r, ok := xp.Stored(i.original)
	if !ok {
		return
	}
	to := r
	to.Namespace = targetNamespace(r.Namespace, i.restore)
	h.Stored = &adoption.Stored{Namespace: to.Namespace, Name: r.Name, UID: i.original.GetUID()}
	if !a.requested.hasReached(to) && excludesSecret(r, i.restore) {
		h.Stored.By = restoreSecretCommand(r, to.Namespace, i.restore).String()
	}
}

// warnOfStore warns, once for each StoreConfig, of what the item published in a store outside of
// the cluster.
func (a *Adopt) warnOfStore(i *item) {
	config := xp.StoredOutside(i.original)
	if config == "" {
		return
	}
	if _, reported := a.missingStores.LoadOrStore(config, true); reported {
		return
	}
	name, _, _ := xp.StoreSecret(i.original)
	i.warn(reason.SecretStoreOutside.Messagef("It publishes with %s in a store outside of this cluster. If the store refuses it, or others that publish there "+
		"(kubectl describe), set the tag %s of %s there to the new UID", config, xp.LabelOwnerUID, name))
}
