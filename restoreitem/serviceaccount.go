package restoreitem

import (
	"context"
	"fmt"
	"strings"

	"github.com/vmware-tanzu/velero/pkg/plugin/velero"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// keepSettings brings the ServiceAccount of a package back for what people have put on it, without the package revision that owned it. Velero adds to one
// that exists what that lacks (velero pkg/restore/merge_service_account.go), and Crossplane takes over one that it finds, with what is on it (crossplane
// internal/controller/pkg/runtime, applySA).
func (a *Adopt) keepSettings(i *item, added []string) (*velero.RestoreItemActionExecuteOutput, error) {
	revision, _ := xp.Controller(i.original)
	if xp.IsNamedAfterRevision(i.original) {
		switch _, err := a.cluster.Owner(context.Background(), revision, ""); {
		case isAbsent(err):
			i.warn(nil, "Restored without its owner, the package revision "+revision.Name+", for what was put on it: "+strings.Join(added, ", ")+
				". Crossplane takes it over if it installs that revision; that of another revision has another name, and nothing of this. To have it with each, put "+
				"labels and annotations into a DeploymentRuntimeConfig (spec.serviceAccountTemplate), and names of pull secrets into the package's packagePullSecrets")
		case err != nil:
			return nil, fmt.Errorf("cannot find the package revision %s of %s: %w", revision.Name, xp.String(i.original), err)
		}
	}
	i.SetOwnerReferences(nil)
	xp.RenameOwners(i.Unstructured, nil)

	return velero.NewRestoreItemActionExecuteOutput(i.Unstructured), nil
}
