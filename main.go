// Command velero-plugin-for-crossplane makes Velero backup and restore safe for Crossplane. Velero starts it as a plugin.
package main

import (
	"sync"

	"github.com/sirupsen/logrus"
	"github.com/spf13/pflag"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/backupitem"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/restoreitem"
)

func main() {
	// All actions of a backup or restore run in one process and share what they have asked the API server.
	connect := sync.OnceValues(live.Connect)
	links := sync.OnceValues(func() (*backupitem.Links, error) {
		cluster, err := connect()
		if err != nil {
			return nil, err
		}

		return backupitem.NewLinks(cluster), nil
	})
	framework.NewServer().
		BindFlags(pflag.CommandLine).
		RegisterBackupItemActionV2("velero.crossplane.io/tree", func(log logrus.FieldLogger) (any, error) {
			l, err := links()

			return backupitem.NewTree(l, log), err
		}).
		RegisterItemBlockAction("velero.crossplane.io/block", func(logrus.FieldLogger) (any, error) {
			l, err := links()

			return backupitem.NewBlock(l), err
		}).
		RegisterRestoreItemActionV2("velero.crossplane.io/1-order", func(log logrus.FieldLogger) (any, error) {
			cluster, err := connect()

			return restoreitem.NewOrder(cluster, log), err
		}).
		RegisterRestoreItemActionV2("velero.crossplane.io/2-adopt", func(log logrus.FieldLogger) (any, error) {
			cluster, err := connect()

			return restoreitem.NewAdopt(cluster, cluster, live.NewAdopter(cluster, log), log), err
		}).
		Serve()
}
