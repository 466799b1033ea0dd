package restoreitem

import (
	"cmp"
	"context"
	"errors"
	"slices"
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
	brings, known := a.requested.secretOf(to)
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

// requestSecrets makes Velero restore the connection secrets of a held XR or MR from a namespace
// that the restore does not include, as a backup has them: some passwords are nowhere else. Nothing
// else of that namespace is restored. It must exist, since Velero would create it without a report.
// Velero 1.18.3 does so; with 1.18.1 the hold waits for another restore.
func (a *Adopt) requestSecrets(i *item, out *velero.RestoreItemActionExecuteOutput) {
	if a.requested == nil || xp.IsClaim(i.original) {
		return
	}
	if r, ok := xp.SecretRef(i.original); ok {
		a.requestSecret(i, r, out)
	}
}

// expectSecrets records the requested Secrets, which Velero comes to next.
func (a *Adopt) expectSecrets(i *item, out *velero.RestoreItemActionExecuteOutput) {
	if !out.WaitForAdditionalItems {
		return
	}
	secrets := make([]xp.Item, 0, len(out.AdditionalItems))
	for _, id := range out.AdditionalItems {
		secrets = append(secrets, xp.Item{GroupResource: id.GroupResource, Namespace: id.Namespace, Name: id.Name})
	}
	a.requested.expectSecrets(i.original, secrets)
}

// requestSecret requests one Secret.
func (a *Adopt) requestSecret(i *item, r xp.Ref, out *velero.RestoreItemActionExecuteOutput) {
	if included(i.restore, r.Namespace) || !includesSecretsOf(i.restore, r.Namespace) {
		return
	}
	to := r
	to.Namespace = targetNamespace(r.Namespace, i.restore)
	brings, known := a.requested.secretOf(to)
	if brings || !known && !xp.HasFlag(i.original, xp.FieldPublished) {
		return
	}
	if exists, err := a.cluster.Exists(context.Background(), to); err == nil && exists {
		return
	}
	if why := a.keepsOut(i, to); why != "" {
		a.warn(i.log, reason.ConnectionSecretLeftOut.Messagef("Its connection %s is not restored with it: %s. The hold of the object has the command that restores "+
			"the Secret", r, why))

		return
	}
	by := publisher{Ref: xp.RefTo(i.original), uid: i.original.GetUID()}
	if r.Name == i.secretWas {
		by.as = xp.ReplaceUID(r.Name, i.carried)
	}
	a.requested.reached.Store(r.ID(), by)
	xp.Annotate(i.Unstructured, xp.AnnotationMustRestore, "true")
	out.AdditionalItems = append(out.AdditionalItems, velero.ResourceIdentifier{GroupResource: resourceSecrets, Namespace: r.Namespace, Name: r.Name})
	out.WaitForAdditionalItems = true // Velero then tells when it has been to them.
}

// keepsOut returns why a Secret must not be brought to a namespace that the restore does not
// include, "" if it may be. All that the backup says of it may be forged, so what is live decides:
// the plugin adds a Secret where Crossplane or a provider could publish one, and changes none.
func (a *Adopt) keepsOut(i *item, to xp.Ref) string {
	ctx := context.Background()
	if isSystemNamespace(to.Namespace, i.restore) {
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

// isSystemNamespace reports whether a namespace is that of Kubernetes or Velero, where a Secret can
// be a credential of the cluster.
func isSystemNamespace(namespace string, restore *velerov1.Restore) bool {
	return strings.HasPrefix(namespace, "kube-") || namespace == cmp.Or(restore.Namespace, velerov1.DefaultNamespace)
}

// includesSecretsOf reports whether a restore takes connection secrets from a namespace that it
// does not include. It doesn't if its user chooses resources or excludes the namespace. Label
// selectors and resource policies are only for what Velero finds itself.
func includesSecretsOf(restore *velerov1.Restore, namespace string) bool {
	s := restore.Spec
	// Velero adds to the excluded resources those that it never restores (velero
	// pkg/controller/restore_controller.go, validateAndComplete).
	chosen := slices.ContainsFunc(s.ExcludedResources, func(resource string) bool { return !slices.Contains(xp.NeverRestoredResources(), resource) })
	all := len(s.IncludedResources) == 0 || slices.Equal(s.IncludedResources, []string{"*"})

	return all && !chosen && !xp.MatchesNamespace(s.ExcludedNamespaces, namespace)
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
	owned = ok && xp.IsConnectionSecret(secret) && c.UID == by.uid && c.Name == by.Name && c.Kind == by.Kind

	return by, true, owned
}

// excludesSecret reports whether a restore's filters exclude a Secret, or may do so.
func excludesSecret(secret xp.Ref, restore *velerov1.Restore) bool {
	return !included(restore, secret.Namespace) || !takesSecrets(restore) || isSelective(restore)
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

// publishedSecrets returns the connection secrets of an XR or MR in a restore by labels, which they
// may lack. They come before their controller, which takes them over.
func (o *Order) publishedSecrets(item *unstructured.Unstructured, restore *velerov1.Restore) []xp.Item {
	if !isSelective(restore) {
		return nil
	}
	r, ok := xp.SecretRef(item)
	to := r
	to.Namespace = targetNamespace(r.Namespace, restore)
	if !ok || !xp.HasFlag(item, xp.FieldPublished) || o.requested.hasReached(to) {
		return nil
	}

	return []xp.Item{secretItem(r)}
}

func secretItem(r xp.Ref) xp.Item {
	return xp.Item{GroupResource: resourceSecrets, Namespace: r.Namespace, Name: r.Name}
}
