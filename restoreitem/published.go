package restoreitem

import (
	"cmp"
	"context"
	"errors"
	"strings"

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
	brings, known := a.Requested.secrets.get(to.ID())
	h.Secret = known || xp.HasFlag(i.original, xp.FieldPublished)
	if h.Secret && !brings && excludesSecret(r, i.restore) {
		h.SecretBy = restoreSecretCommand(r, to.Namespace, i.restore).String()
	}
}

// A publisher is the object of the backup that publishes in a connection secret.
type publisher struct {
	xp.Ref

	uid types.UID
	// as is the new name of the Secret, "" if it is the same.
	as string
}

// requestSecret makes Velero restore the connection secret of a held XR or MR from a namespace that
// the restore does not include, as a backup has it: some passwords are nowhere else. Nothing else of
// that namespace is restored. It must exist, since Velero would create it without a report. Velero
// 1.18.3 does so; with 1.18.1 the hold waits for another restore.
func (a *Adopt) requestSecret(i *item, out *velero.RestoreItemActionExecuteOutput) {
	r, ok := xp.SecretRef(i.original)
	if !ok || xp.IsClaim(i.original) || included(i.restore, r.Namespace) || !includesSecretsOf(i.restore, r.Namespace) {
		return
	}
	to := r
	to.Namespace = targetNamespace(r.Namespace, i.restore)
	brings, known := a.Requested.secrets.get(to.ID())
	if brings || !known && !xp.HasFlag(i.original, xp.FieldPublished) {
		return
	}
	if exists, err := a.cluster.Exists(context.Background(), to); err == nil && exists {
		return
	}
	if why := a.keepsOut(i, to); why != "" {
		i.logWarning(reason.ConnectionSecretLeftOut.Messagef("Its connection %s is not restored with it: %s. The hold of the object has the command that restores "+
			"the Secret", r, why))

		return
	}
	by := publisher{Ref: xp.RefTo(i.original), uid: i.original.GetUID()}
	if r.Name == i.secretWas {
		by.as = xp.ReplaceUID(r.Name, i.carried)
	}
	a.Requested.reached.put(r.ID(), by)
	xp.Annotate(i.Unstructured, xp.AnnotationMustRestore, "true")
	out.AdditionalItems = append(out.AdditionalItems, velero.ResourceIdentifier(secretItem(r)))
	out.WaitForAdditionalItems = true // Velero then tells when it has been to them.
}

// keepsOut returns why a Secret must not be brought to a namespace that the restore does not
// include, "" if it may be. All that the backup says of it may be forged, so what is live decides:
// the plugin adds a Secret where Crossplane or a provider could publish one, and changes none.
func (a *Adopt) keepsOut(i *item, to xp.Ref) string {
	ctx := context.Background()
	// There a Secret can be a credential of the cluster.
	if strings.HasPrefix(to.Namespace, "kube-") || to.Namespace == cmp.Or(i.restore.Namespace, velerov1.DefaultNamespace) {
		return "in the namespaces of Kubernetes and Velero a restore of other namespaces brings nothing"
	}
	reconciled, reconciledErr := a.cluster.IsReconciled(ctx, i.GroupVersionKind())
	namespace, namespaceErr := a.cluster.Exists(ctx, xp.Ref{APIVersion: "v1", Kind: "Namespace", Name: to.Namespace})
	switch err := errors.Join(reconciledErr, namespaceErr); {
	case err != nil:
		return "the cluster can't be read: " + err.Error()
	case !namespace:
		return "the namespace does not exist"
	case !reconciled:
		return "neither Crossplane nor a provider reconciles the kind of the object that names it"
	default:
		return ""
	}
}

// publisherOf returns what a Secret was requested for. reached means that it was, and owned that
// the Secret is that publisher's: the backup may have been tampered with.
func (ri *RequestedItems) publisherOf(secret *unstructured.Unstructured) (by publisher, reached, owned bool) {
	if by, reached = ri.reached.get(xp.RefTo(secret).ID()); !reached {
		return by, false, false // Without a look at its owners, of which a tenant can write thousands.
	}
	c, ok := xp.Controller(secret)
	owned = ok && xp.IsConnectionSecret(secret) && c.UID == by.uid && c.Name == by.Name && c.Kind == by.Kind

	return by, true, owned
}

// restoreSecretCommand returns the command that restores a Secret to a namespace from the backup.
func restoreSecretCommand(secret xp.Ref, to string, restore *velerov1.Restore) xp.Command {
	from, name := "--from-backup", restore.Spec.BackupName
	if name == "" {
		from, name = "--from-schedule", restore.Spec.ScheduleName
	}
	c := xp.NewCommand("velero", "restore", "create").With(from, name).With("--include-namespaces", secret.Namespace).With("--include-resources", resourceSecrets.Resource)
	if to != secret.Namespace {
		c = c.With("--namespace-mappings", secret.Namespace+":"+to)
	}
	if in := cmp.Or(restore.Namespace, velerov1.DefaultNamespace); in != velerov1.DefaultNamespace {
		c = c.With("--namespace", in)
	}

	return c
}

// publishedSecrets returns the connection secrets of an XR or MR in a restore by labels, which they
// may lack. They come before their controller, which takes them over.
func (o *Order) publishedSecrets(i *item) []xp.Item {
	r, ok := xp.SecretRef(i.original)
	to := r
	to.Namespace = targetNamespace(r.Namespace, i.restore)
	if !isSelective(i.restore) || !ok || !xp.HasFlag(i.original, xp.FieldPublished) || o.Requested.hasReached(to) {
		return nil
	}

	return []xp.Item{secretItem(r)}
}

func secretItem(r xp.Ref) xp.Item {
	return xp.Item{GroupResource: resourceSecrets, Namespace: r.Namespace, Name: r.Name}
}
