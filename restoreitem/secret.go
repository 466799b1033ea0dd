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

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// awaitSecret makes the hold of an XR or MR wait for its connection secret, if the backup has that.
// Without it the publisher would create another.
func (a *Adopt) awaitSecret(i *item, h *hold.Hold) {
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
	c := xp.NewCommand("velero", "restore", "create").With(from, name).
		With("--include-namespaces", secret.Namespace).With("--include-resources", resourceSecrets.Resource)
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

// findInputs finds the missing Secrets that an MR's provider reads. The MR is held for those that
// existed at backup time. A note names the others, unless the backup records that they did not
// exist. An MR that its user has paused is not held, since its provider does not read them. Velero
// restores Secrets before custom resources, except for custom resources that a Secret requests.
func (a *Adopt) findInputs(i *item) {
	if !i.isManaged() {
		return
	}
	noted := xp.Inputs(i.original)
	for _, r := range xp.InputSecrets(i.original) {
		was := i.inputTarget(r)
		to := was
		to.Name = xp.ReplaceUID(was.Name, i.carried)
		exists, err := a.cluster.Exists(context.Background(), to)
		if exists {
			continue
		}
		in, known := noted[r]
		came := a.Requested.hasReached(was)
		switch existed := in.Exists || came || wasAwaited(i, r); {
		case existed && !xp.IsPaused(i.withoutHold()):
			i.inputs = append(i.inputs, missingInput(to, r, in.Stored || came, came, i))
		case !came && (existed || !known):
			a.warnOfInput(i, to, err)
		}
	}
}

// inputTarget returns the Secret r of the backup as the restored MR's provider reads it. Namespace
// mappings don't apply to what a Helm Release names in its spec, nor to Terraform code.
func (i *item) inputTarget(r xp.Ref) xp.Ref {
	if !xp.IsStateSecret(r.Name) || !xp.IsWorkspace(i.original) && !xp.NamesReleaseNamespace(i.original) {
		r.Namespace = targetNamespace(r.Namespace, i.restore)
	}

	return r
}

// missingInput returns the entry in a hold for the Secret to, which is r in the backup.
func missingInput(to, r xp.Ref, stored, came bool, i *item) hold.Input {
	in := hold.Input{Namespace: to.Namespace, Name: to.Name, Stored: stored}
	if to.Name != r.Name {
		in.Was = r.Name
	}
	elsewhere := to.Namespace != targetNamespace(r.Namespace, i.restore)
	if stored && !came && (excludesSecret(r, i.restore) || elsewhere) {
		in.By = restoreSecretCommand(r, to.Namespace, i.restore).String()
	}

	return in
}

// awaitsRelease reports whether the item is held for Helm's Secret of the revision in its status.
func (i *item) awaitsRelease() bool {
	return slices.ContainsFunc(i.inputs, func(in hold.Input) bool { return xp.IsReleaseSecret(in.Name) })
}

// wasAwaited reports whether the item had a hold at backup time that waits for the Secret r.
func wasAwaited(i *item, r xp.Ref) bool {
	h := i.formerHold()

	return h != nil && slices.ContainsFunc(h.Inputs, func(in hold.Input) bool { return in.Ref() == r })
}

// warnOfInput warns of a missing Secret that an MR's provider reads, or can't be looked for.
func (a *Adopt) warnOfInput(i *item, r xp.Ref, err error) {
	if a.missingSecrets.has(r.ID()) {
		return
	}
	m := reason.InputMissing.Messagef("%s, which the provider of %s reads, is not in the cluster. The provider fails, or generates another password. Restore "+
		"the Secret, or create it with the password in use", r, xp.String(i.original))
	if state, ok := xp.StateIn(r.Name); ok {
		m = reason.InputMissing.Messagef("%s, in which %s keeps the %s of %s, is not in the cluster. Unless the %s is in another cluster, %s. Restore the Secret",
			r, state.Keeper, state.What, xp.String(i.original), state.What, state.Again)
	}
	if err != nil {
		m = reason.InputMissing.Messagef("Cannot find out whether %s exists, which the provider of %s reads: %v", r, xp.String(i.original), err)
	}
	if i.warn(m) {
		a.missingSecrets.put(r.ID(), true)
	}
}
