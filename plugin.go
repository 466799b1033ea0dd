package main

import (
	"runtime/debug"
	"sync"

	"github.com/sirupsen/logrus"
	"github.com/spf13/pflag"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework/common"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/backupitem"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/hooks"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adopter"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/restoreitem"
)

// gcPercent lowers GOGC: the plugin shares the memory of Velero's Pod and is mostly idle.
const gcPercent = 50

// serve registers the actions and serves them until Velero stops this process:
//
//   - BackupItemAction tree adds what an item needs to the backup, and notes it on the item.
//   - BackupItemAction discovery warns of API groups that Velero can't list.
//   - ItemBlockAction block has Velero back up an XR's tree as one block.
//   - RestoreItemAction 1-order has Velero restore first what an item needs.
//   - RestoreItemAction 2-adopt writes owner references and holds. Its operation proves the
//     adoption and lifts the holds.
func serve() {
	debug.SetGCPercent(gcPercent)
	features, modifiers := veleroFlags(pflag.CommandLine)
	connect := sync.OnceValues(func() (*actions, error) {
		c, err := cluster.Connect("", "")
		if err != nil {
			return nil, err
		}

		return newActions(c, *features, *modifiers), nil
	})
	action := func(build func(a *actions, log logrus.FieldLogger) any) common.HandlerInitializer {
		return func(log logrus.FieldLogger) (any, error) {
			a, err := connect()
			if err != nil {
				return nil, err
			}

			return build(a, log), nil
		}
	}
	server := framework.NewServer().
		BindFlags(pflag.CommandLine).
		RegisterBackupItemActionV2("velero.crossplane.io/tree", action((*actions).tree)).
		RegisterBackupItemActionV2("velero.crossplane.io/discovery", action((*actions).discovery)).
		RegisterItemBlockAction("velero.crossplane.io/block", action((*actions).block))
	for _, r := range restoreitem.Orders() {
		server.RegisterRestoreItemActionV2(r.Name, action(func(a *actions, log logrus.FieldLogger) any { return a.order(r.Selector, log) }))
	}
	for _, r := range restoreitem.Adopts() {
		server.RegisterRestoreItemActionV2(r.Name, action(func(a *actions, log logrus.FieldLogger) any { return a.adopt(r.Selector, log) }))
	}
	server.Serve()
}

// veleroFlags binds the arguments of Velero's server that a plugin needs. Velero starts plugins with
// all that follow its own "server" (velero pkg/plugin/clientmgmt/process/client_builder.go), but
// BindFlags does not bind these: the features, and the name of the ConfigMap with the default
// resource modifiers, "" if there is none.
func veleroFlags(flags *pflag.FlagSet) (features *[]string, modifiers *string) {
	return flags.StringSlice("features", nil, "What is enabled in the Velero that starts this plugin."),
		flags.String(restoreitem.DefaultModifiers, "", "The resource modifiers of restores that name none, of the Velero that starts this plugin.")
}

// actions has what the actions of one backup or restore share. Velero runs all of them in one
// process.
type actions struct {
	cluster  *cluster.Cluster
	target   *adopter.Target
	resolver *backupitem.Resolver
	shared   restoreitem.Shared
	logged   sync.Once
}

func newActions(cluster *cluster.Cluster, features []string, modifiers string) *actions {
	return &actions{
		cluster: cluster, target: adopter.NewTarget(cluster), resolver: backupitem.NewResolver(cluster),
		shared: restoreitem.Shared{
			Requested: &restoreitem.RequestedItems{}, XRDs: restoreitem.NewXRDCheck(cluster), Ready: restoreitem.NewReadiness(cluster),
			Features: func() []string { return features }, Modifiers: func() string { return modifiers },
		},
	}
}

// logVersion logs the version once per process. 2-adopt does not call it: Velero starts a process
// for each poll, so the version would be logged every ten seconds.
func (a *actions) logVersion(log logrus.FieldLogger) {
	a.logged.Do(func() { log.Info(hooks.Name + " " + version()) })
}

func (a *actions) tree(log logrus.FieldLogger) any {
	a.logVersion(log)

	return backupitem.NewTree(a.resolver, log)
}

func (a *actions) discovery(log logrus.FieldLogger) any {
	return backupitem.NewDiscovery(a.cluster, a.cluster.ServerTime, log)
}

func (a *actions) block(log logrus.FieldLogger) any { return backupitem.NewItemBlock(a.resolver, log) }

func (a *actions) order(selector velero.ResourceSelector, log logrus.FieldLogger) any {
	a.logVersion(log)

	return restoreitem.NewOrder(selector, a.cluster, log, a.shared)
}

func (a *actions) adopt(selector velero.ResourceSelector, log logrus.FieldLogger) any {
	return restoreitem.NewAdopt(selector, a.target, adopter.New(a.cluster, log).OnStep(a.shared.Requested.OnStep), log, a.shared)
}
