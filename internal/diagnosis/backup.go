package diagnosis

import (
	"errors"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkSecrets finds connection secrets that the backup lacks although it has their publisher. A
// password may exist nowhere else.
func (d *diagnosis) checkSecrets() {
	for _, u := range d.sortedAll() {
		if !u.is(isPublishing) {
			continue
		}
		r, _ := xp.SecretRef(u.full())
		if d.get(r) != nil || d.IsUnread(r) {
			continue
		}
		d.add(reason.SecretMissing, report.Warning, r, u.String()+" publishes its connection details in it, and it is not in the backup",
			"if it has published nothing yet, nothing is lost. Otherwise back up the Secret's namespace too: a password that the cloud shows once exists nowhere else")
	}
}

// checkInputs finds Secrets that the backup lacks although an MR's provider reads them. Without one
// the provider may generate another password than the one in use.
func (d *diagnosis) checkInputs() {
	reported := map[xp.Ref]bool{}
	for _, o := range sorted(d.managed) {
		mr := o.source.Part(shapeInput)
		noted := xp.Inputs(mr)
		for _, r := range xp.InputSecrets(mr) {
			if in, known := noted[r]; known && !in.Exists {
				continue // It did not exist at backup time, so a restore does not wait for it.
			}
			if d.get(r) != nil || d.IsUnread(r) || reported[r] {
				continue
			}
			reported[r] = true
			if state, ok := xp.StateIn(r.Name); ok {
				d.add(reason.InputMissing, report.Warning, r, state.Keeper+" keeps the "+state.What+" of "+o.String()+" in it, and it is not in the backup",
					"back up its namespace too, unless the "+state.What+" is in another cluster. Without it "+state.Again+", so a restore holds what needs it until it "+
						"exists")

				continue
			}
			d.add(reason.InputMissing, report.Warning, r, "the provider of "+o.String()+" reads it, and it is not in the backup",
				"back up its namespace too, or set provider-credentials to include. Without it the provider fails, or generates another password than the one in "+
					"use, so a restore holds what names it until it exists")
		}
	}
}

// checkServiceAccounts finds settings that were added to the ServiceAccount of one package
// revision. The ServiceAccount of another revision has another name.
func (d *diagnosis) checkServiceAccounts() {
	for _, o := range d.sortedAll() {
		if !o.is(isCustomizedAccount) {
			continue
		}
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
	const refuses = "a restore with this version refuses it; " + adoption.HowToRead
	for _, o := range d.sortedAll() {
		if o.is(isNewer) {
			d.add(reason.Malformed, report.Error, o.Ref, xp.CheckFormat(o.full()).Error(), refuses)

			continue
		}
		if !o.is(isMarked) {
			continue
		}
		u := o.full()
		h, err := adoption.HoldOf(u)
		switch {
		case errors.Is(err, adoption.ErrNewer):
			d.add(reason.Malformed, report.Error, xp.RefTo(u), err.Error(), refuses)
		case err != nil:
			d.add(reason.Malformed, report.Warning, xp.RefTo(u), err.Error(), "a restore treats it as written by another program, and replaces it")
		case h != nil && !h.IsByCommand():
			d.add(reason.Held, report.Warning, xp.RefTo(u), h.By()+" held it at the backup: "+h.Reason,
				"a restore holds it until it is adopted. In the source cluster, see what it waits for: "+xp.ValidateCommand(xp.RefTo(u)).String())
		}
	}
}
