package restoreitem

import (
	"context"
	"slices"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

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
func missingInput(to, r xp.Ref, stored, came bool, i *item) adoption.Input {
	in := adoption.Input{Namespace: to.Namespace, Name: to.Name, Stored: stored}
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
	return slices.ContainsFunc(i.inputs, func(in adoption.Input) bool { return xp.IsReleaseSecret(in.Name) })
}

// wasAwaited reports whether the item had a hold at backup time that waits for the Secret r.
func wasAwaited(i *item, r xp.Ref) bool {
	h := i.formerHold()

	return h != nil && slices.ContainsFunc(h.Inputs, func(in adoption.Input) bool { return in.Ref() == r })
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
