package restoreitem

import (
	"context"
	"strings"

	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// keepServiceAccount restores the ServiceAccount of a package for what users added to it, without
// its package revision as owner. Velero adds to a live one what it lacks (velero
// pkg/restore/merge_service_account.go), and Crossplane takes over a live one as it is (crossplane
// internal/controller/pkg/runtime, applySA).
func (a *Adopt) keepServiceAccount(i *item, added []string) (*velero.RestoreItemActionExecuteOutput, error) {
	revision, _ := xp.Controller(i.original)
	if xp.IsNamedAfterRevision(i.original) {
		switch _, err := a.cluster.Owner(context.Background(), revision, ""); {
		case isAbsent(err):
			i.warn(reason.SettingsMisplaced.Messagef("Restored without its owner, the package revision %s, because users added to it: %s. To have that with all "+
				"revisions, use a DeploymentRuntimeConfig and packagePullSecrets",
				revision.Name, strings.Join(added, ", ")))
		case err != nil:
			return nil, apiErrorf("cannot find the package revision %s of %s: %w", revision.Name, xp.String(i.original), err)
		}
	}
	i.SetOwnerReferences(nil)
	xp.RenameOwners(i.Unstructured, nil)

	return velero.NewRestoreItemActionExecuteOutput(i.Unstructured), nil
}

// skipRebuilt leaves out what the control plane creates again, unless users added to it.
func (a *Adopt) skipRebuilt(i *item, why string) (*velero.RestoreItemActionExecuteOutput, error) {
	if added := xp.AddedSettings(i.original); len(added) > 0 {
		return a.keepServiceAccount(i, added)
	}

	return a.skip(i, why), nil
}

// skip leaves out what the control plane creates again. A restore can have hundreds of a kind, so
// the log names each kind once.
func (a *Adopt) skip(i *item, why string) *velero.RestoreItemActionExecuteOutput {
	m := reason.Rebuilt.Messagef("It is not restored, because a restored one is of no use: %s", why)
	log := withCode(i.log, m)
	if _, reported := a.skipped.LoadOrStore(i.GroupVersionKind().GroupKind(), true); reported {
		log.Debug(m)
	} else {
		log.Info(m)
	}
	i.remarks.add(remark{Message: m})

	return (&velero.RestoreItemActionExecuteOutput{}).WithoutRestore()
}

// skipReason returns why the control plane creates the item again, "" if it doesn't.
func (a *Adopt) skipReason(i *item) (string, error) {
	if why := xp.SkipReason(i.original); why != "" || !xp.IsPackageRevision(i.original) {
		return why, nil
	}

	return a.revisionSkipReason(i.original)
}

// revisionSkipReason returns why a package revision is left out, "" if only users activate the
// revisions of its package.
func (a *Adopt) revisionSkipReason(revision *unstructured.Unstructured) (string, error) {
	ref, ok := xp.Controller(revision)
	if !ok {
		return "it has no package that shows how it is activated", nil
	}
	pkg, err := a.cluster.Owner(context.Background(), ref, "")
	switch {
	case isAbsent(err):
		return "its package " + ref.Name + " is not in the cluster", nil
	case err != nil:
		return "", apiErrorf("cannot find the package of %s: %w", xp.String(revision), err)
	case !xp.ActivatesManually(pkg):
		return "its package creates it again; a restored one has no controller", nil
	default:
		return "", nil
	}
}
