package restoreitem

import (
	"context"

	"github.com/sirupsen/logrus"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// warnOfInputs names the Secrets that an MR has its provider read and that are not there. Velero restores Secrets before custom resources, but for those that
// something among the Secrets has asked for.
func (a *Adopt) warnOfInputs(i *item) {
	if !i.isManaged() {
		return
	}
	for _, r := range xp.InputSecrets(i.original) {
		r.Namespace = targetNamespace(r.Namespace, i.restore)
		if a.asks.came(r) {
			continue
		}
		exists, err := a.cluster.Exists(context.Background(), r)
		if _, told := a.lacking.LoadOrStore(r.ID(), true); exists || told {
			continue
		}
		if err != nil {
			i.warn(logrus.Fields{logrus.ErrorKey: err}, "Cannot find out whether "+r.String()+" is there, which the provider of "+xp.String(i.original)+" reads")

			continue
		}
		i.warn(nil, xp.String(i.original)+" has its provider read "+r.String()+", which is neither in the cluster nor was restored before it: the provider fails "+
			"until it is there, or makes another password than the one that is in use. Restore it, if it is in a backup, or make it, with what the external resource "+
			"has; the next backup has it with its namespace, or with the setting "+setting.NameCredentials+"=include")
	}
}
