package restoreitem

import (
	"cmp"
	"context"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// awaitSecret makes the hold of an XR or MR wait for its connection secret, if the backup has that.
// Without it the publisher would create another.
func (a *Adopt) awaitSecret(i *item, h *adoption.Hold) {
	r, ok := xp.SecretRef(i.original)
	if !ok {
		return
	}
	to := r
	to.Namespace = targetNamespace(r.Namespace, i.restore)
	brings, known := a.requested.secretOf(to)
	h.Secret = known || xp.Published(i.original)
	if h.Secret && !brings && excludesSecret(r, i.restore) {
		h.SecretBy = restoreSecretCommand(r, to.Namespace, i.restore).String()
	}
}

// A publisher is the object of the backup that publishes in a connection secret.
type publisher struct {
	xp.Ref

	uid types.UID
}

// requestSecrets makes Velero restore the connection secrets of a held XR or MR from a namespace
// that the restore does not include, as a backup has them: some passwords are nowhere else. Nothing
// else of that namespace is restored. It must exist, since Velero would create it without a report.
// Velero 1.18.3 does so; with 1.18.1 the hold waits for another restore.
func (a *Adopt) requestSecrets(i *item, out *velero.RestoreItemActionExecuteOutput) {
	if a.requested == nil || xp.IsClaim(i.original) {
		return
	}
	if r, ok := xp.SecretRef(i.original); ok {
		a.requestSecret(i, r, xp.Published(i.original), out)
	}
	if r, ok := xp.Stored(i.original); ok {
		a.requestSecret(i, r, true, out)
	}
}

// requestSecret requests one Secret. noted means that the item records it as published.
func (a *Adopt) requestSecret(i *item, r xp.Ref, noted bool, out *velero.RestoreItemActionExecuteOutput) {
	if included(i.restore, r.Namespace) || !includesSecretsOf(i.restore, r.Namespace) {
		return
	}
	to := r
	to.Namespace = targetNamespace(r.Namespace, i.restore)
	brings, known := a.requested.secretOf(to)
	if brings || !known && !noted {
		return
	}
	live, err := a.cluster.Exists(context.Background(), xp.Ref{APIVersion: "v1", Kind: "Namespace", Name: to.Namespace})
	if err != nil || !live {
		a.warn(i.log.WithError(err), reason.ConnectionSecretLeftOut.Messagef("Its connection %s is not restored with it, because the namespace does not exist or "+
			"can't be read. The hold of the object has the command that restores the Secret", r))

		return
	}
	a.requested.reached.Store(r.ID(), publisher{Ref: xp.RefTo(i.original), uid: i.original.GetUID()})
	xp.SetMustRestore(i.Unstructured)
	out.AdditionalItems = append(out.AdditionalItems, velero.ResourceIdentifier{GroupResource: resourceSecrets, Namespace: r.Namespace, Name: r.Name})
}

// includesSecretsOf reports whether a restore takes connection secrets from a namespace that it
// does not include. It doesn't if its user chooses resources or excludes the namespace.
func includesSecretsOf(restore *velerov1.Restore, namespace string) bool {
	s := restore.Spec
	// Velero adds to the excluded resources those that it never restores (velero
	// pkg/controller/restore_controller.go, validateAndComplete).
	chosen := slices.ContainsFunc(s.ExcludedResources, func(resource string) bool { return !slices.Contains(xp.NeverRestoredResources(), resource) })
	all := len(s.IncludedResources) == 0 || slices.Equal(s.IncludedResources, []string{"*"})

	return all && !chosen && s.ResourcePolicy == nil && !xp.MatchesNamespace(s.ExcludedNamespaces, namespace)
}

// publisherOf returns what a Secret was requested for. reached means that it was, and owned that
// the Secret is that publisher's: the backup may have been tampered with.
func (ri *RequestedItems) publisherOf(secret *unstructured.Unstructured) (by publisher, reached, owned bool) {
	v, reached := ri.reached.Load(xp.RefTo(secret).ID())
	if !reached {
		return publisher{}, false, false
	}
	by, _ = v.(publisher)
	c, ok := xp.Controller(secret)
	owned = ok && xp.IsConnectionSecret(secret) && c.UID == by.uid && c.Name == by.Name && c.Kind == by.Kind ||
		by.uid != "" && xp.Label(secret, xp.LabelOwnerUID) == string(by.uid)

	return by, true, owned
}

// excludesSecret reports whether a restore's filters exclude a Secret, or may do so.
func excludesSecret(secret xp.Ref, restore *velerov1.Restore) bool {
	return !included(restore, secret.Namespace) || !takesSecrets(restore) || isSelective(restore) || restore.Spec.ResourcePolicy != nil
}

// restoreSecretCommand returns the command that restores a Secret from the same backup to the given
// namespace.
func restoreSecretCommand(secret xp.Ref, to string, restore *velerov1.Restore) xp.Command {
	c := xp.NewCommand("velero", "restore", "create").With("--from-backup", restore.Spec.BackupName)
	if restore.Spec.BackupName == "" {
		c = xp.NewCommand("velero", "restore", "create").With("--from-schedule", restore.Spec.ScheduleName)
	}
	c = c.With("--include-namespaces", secret.Namespace).With("--include-resources", resourceSecrets.Resource)
	if to != secret.Namespace {
		c = c.With("--namespace-mappings", secret.Namespace+":"+to)
	}
	if in := cmp.Or(restore.Namespace, velerov1.DefaultNamespace); in != velerov1.DefaultNamespace {
		c = c.With("--namespace", in)
	}

	return c
}
