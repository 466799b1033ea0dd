package diagnosis

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkSecrets finds missing connection secrets. A password may exist nowhere else.
func (d *diagnosis) checkSecrets() {
	for _, u := range d.with(isPublishing) {
		r, _ := xp.SecretRef(u.full())
		if d.get(r) != nil || d.IsUnread(r) {
			continue
		}
		d.add(reason.SecretMissing, report.Warning, r, u.String()+" publishes its connection details in it, and it is not in the backup",
			"if it has published nothing yet, nothing is lost. Otherwise back up the Secret's namespace too: a password that the cloud shows once exists nowhere else")
	}
}

// checkInputs finds missing Secrets that the provider of an MR reads.
func (d *diagnosis) checkInputs() {
	reported := map[xp.Ref]bool{}
	for _, o := range d.with(isManaged | isNew) {
		mr := o.source.Part(shapeInput)
		noted := xp.Inputs(mr)
		for _, r := range xp.InputSecrets(mr) {
			// What did not exist at backup time, no restore waits for.
			if in, known := noted[r]; known && !in.Exists || d.get(r) != nil || d.IsUnread(r) || reported[r] {
				continue
			}
			reported[r] = true
			why, next := "the provider of "+o.String()+" reads it, and it is not in the backup",
				"back up its namespace too, or set provider-credentials to include. Without it the provider fails, or generates another password than the one in "+
					"use, so a restore holds what names it until it exists"
			if state, ok := xp.StateIn(r.Name); ok {
				why = state.Keeper + " keeps the " + state.What + " of " + o.String() + " in it, and it is not in the backup"
				next = "back up its namespace too, unless the " + state.What + " is in another cluster. Without it " + state.Again +
					", so a restore holds what needs it until it exists"
			}
			d.add(reason.InputMissing, report.Warning, r, why, next)
		}
	}
}

// checkServiceAccounts finds what users added to the ServiceAccount of one package revision.
func (d *diagnosis) checkServiceAccounts() {
	for _, o := range d.with(isCustomizedAccount) {
		u := o.full()
		revision, _ := xp.Controller(u)
		d.add(reason.SettingsMisplaced, report.Warning, o.Ref, "it belongs to the package revision "+revision.Name+", and a user added to it: "+
			strings.Join(xp.AddedSettings(u), ", "), "a restore brings that back, but only this revision runs with it. For each revision, put labels and "+
			"annotations into a DeploymentRuntimeConfig (spec.serviceAccountTemplate), and names of pull secrets into the package's packagePullSecrets")
	}
}

// checkHeld finds objects that were held at backup time. A restore holds them again, and the hold
// ends with the settings from before the first hold.
func (d *diagnosis) checkHeld() {
	const refuses = "a restore with this version refuses it; " + hold.HowToRead
	for _, o := range d.with(isNewer | isMarked) {
		if o.is(isNewer) {
			d.add(reason.Malformed, report.Error, o.Ref, xp.CheckFormat(o.full()).Error(), refuses)

			continue
		}
		u := o.full()
		h, err := hold.Of(u)
		switch {
		case errors.Is(err, hold.ErrNewer):
			d.add(reason.Malformed, report.Error, xp.RefTo(u), err.Error(), refuses)
		case err != nil:
			d.add(reason.Malformed, report.Warning, xp.RefTo(u), err.Error(), "a restore treats it as written by another program, and replaces it")
		case h != nil && !h.IsByCommand():
			d.add(reason.Held, report.Warning, xp.RefTo(u), h.By()+" held it at the backup: "+h.Reason,
				"a restore holds it until it is adopted. In the source cluster, see what it waits for: "+xp.ValidateCommand(xp.RefTo(u)).String())
		}
	}
}

// checkUIDs finds UIDs of XRs and claims above an object that a restore can't replace in it.
func (d *diagnosis) checkUIDs() {
	const next = "let the Composition take the value from a name, the namespace, or a label or field of the XR that has the old value, then back up again. "
	for _, o := range d.with(isComposed) {
		if o.controller == "" {
			continue
		}
		u := o.full()
		if !xp.HasUID(u) {
			continue
		}
		uids, claims := d.uidsAbove(o)
		var identity, immutable []string
		for _, f := range xp.UIDFields(u, uids...) {
			switch {
			case o.is(isManaged|isComposite|isForged) && (f.IsIdentity(u) || f.NamesSecret() && claims[f.UID]):
				identity = append(identity, f.Path)
			case f.UID == o.controller && f.IsImmutable(u):
				immutable = append(immutable, f.Path)
			}
		}
		if len(identity) > 0 {
			d.add(reason.UIDInIdentity, report.Warning, o.Ref, "it has the UID of an XR or claim above it in its "+strings.Join(identity, " and its ")+
				". A restored one has another, and Crossplane would write that there", next+"A restore of this backup holds the XR until a user releases it")
		}
		if len(immutable) > 0 {
			d.add(reason.UIDInImmutable, report.Warning, o.Ref, "it has the UID of its XR in its "+strings.Join(immutable, " and its ")+
				", which can't be changed. A restored XR has another UID", next+"After a restore of this backup, Crossplane can't reconcile the XR until a user deletes "+
				"this object")
		}
	}
}

// uidsAbove returns the UIDs of the XRs and claims above an object, and which are of claims.
func (d *diagnosis) uidsAbove(o *object) (uids []types.UID, claims map[types.UID]bool) {
	const most = 16
	uids, claims = []types.UID{o.controller}, map[types.UID]bool{} // The backup can lack the XR.
	for range most {
		if o = d.byUID[o.controller]; o == nil || !o.is(isComposite|isForged) {
			break
		}
		uids = append(uids, o.uid)
		if r, ok := xp.CompositeFrom(o.full()).ClaimRef(); ok {
			if claim := d.get(r); claim != nil {
				uids, claims[claim.uid] = append(uids, claim.uid), true
			}
		}
	}

	return uids, claims
}

// checkUnrestored finds what XRs compose that Velero does not restore, and Jobs that start again.
func (d *diagnosis) checkUnrestored() {
	for _, xr := range d.with(isComposite) {
		for _, r := range xr.refs {
			o := d.get(r)
			if !xp.MayStayOut(r.GroupVersionKind().GroupKind()) || o == nil || !d.isComposedBy(xr, o) {
				continue
			}
			switch u := o.full(); {
			case xp.Unrestored(u) != "":
				d.add(reason.MadeAgain, report.Warning, r, xr.String()+" composes it, and Velero restores no completed Pod or Job, and nothing of some kinds",
					"a restore does not wait for it, and Crossplane makes it again, so that a Job runs once more. If it must not, take it out of the Composition "+
						"before the restore")
			case xp.RunsAgain(u):
				d.add(reason.RunsAgain, report.Warning, r, xr.String()+" composes it, and it had started and not completed at the backup",
					"a restore starts it again. If it must not run again, delete or suspend it in the source cluster, and back up again")
			}
		}
	}
}
