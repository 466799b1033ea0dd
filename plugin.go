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
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
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
	flags := pflag.CommandLine
	connect := sync.OnceValues(func() (*live.Cluster, error) { return live.Connect("", "") })
	a := newActions(connect, modifiersOf(flags), featuresOf(flags))
	server := framework.NewServer().
		BindFlags(flags).
		RegisterBackupItemActionV2("velero.crossplane.io/tree", a.tree).
		RegisterBackupItemActionV2("velero.crossplane.io/discovery", a.discovery).
		RegisterItemBlockAction("velero.crossplane.io/block", a.block)
	for _, r := range restoreitem.Orders() {
		server.RegisterRestoreItemActionV2(r.Name, a.order(r.Selector))
	}
	for _, r := range restoreitem.Adopts() {
		server.RegisterRestoreItemActionV2(r.Name, a.adopt(r.Selector))
	}
	server.Serve()
}

// actions creates the actions of one backup or restore. Velero runs all of them in one process, so
// they share the connection and what they read from the API server.
type actions struct {
	connect  func() (*live.Cluster, error)
	resolver func() (*backupitem.Resolver, error)
	shared   func() (restoreitem.Shared, error)
	logged   sync.Once
}

func newActions(connect func() (*live.Cluster, error), modifiers func() string, features func() []string) *actions {
	return &actions{
		connect:  connect,
		resolver: with(connect, func(c *live.Cluster) *backupitem.Resolver { return backupitem.NewResolver(c) }),
		shared: with(connect, func(c *live.Cluster) restoreitem.Shared {
			return restoreitem.Shared{
				Requested: &restoreitem.RequestedItems{}, XRDs: restoreitem.NewXRDCheck(c), Ready: restoreitem.NewReadiness(c),
				Features: features, Modifiers: modifiers,
			}
		}),
	}
}

// with returns a function that connects and builds a value at the first call, and returns the same
// value or error at each later call.
func with[T any](connect func() (*live.Cluster, error), build func(c *live.Cluster) T) func() (T, error) {
	return sync.OnceValues(func() (T, error) {
		cluster, err := connect()
		if err != nil {
			var none T

			return none, err
		}

		return build(cluster), nil
	})
}

// logVersion logs the version once per process. 2-adopt does not call it: Velero starts a process
// for each poll, so the version would be logged every ten seconds.
func (a *actions) logVersion(log logrus.FieldLogger) {
	a.logged.Do(func() { log.Info(hooks.Name + " " + version()) })
}

func (a *actions) tree(log logrus.FieldLogger) (any, error) {
	a.logVersion(log)
	resolver, err := a.resolver()
	if err != nil {
		return nil, err
	}
	cluster, err := a.connect()

	return backupitem.NewTree(resolver, log).WithMarkKey(cluster), err
}

func (a *actions) discovery(log logrus.FieldLogger) (any, error) {
	cluster, err := a.connect()

	return backupitem.NewDiscovery(cluster, cluster.ServerTime, log), err
}

func (a *actions) block(log logrus.FieldLogger) (any, error) {
	resolver, err := a.resolver()

	return backupitem.NewItemBlock(resolver, log), err
}

func (a *actions) order(selector velero.ResourceSelector) common.HandlerInitializer {
	return func(log logrus.FieldLogger) (any, error) {
		a.logVersion(log)
		shared, err := a.shared()
		if err != nil {
			return nil, err
		}
		cluster, err := a.connect()

		return restoreitem.NewOrder(selector, cluster, log, shared), err
	}
}

func (a *actions) adopt(selector velero.ResourceSelector) common.HandlerInitializer {
	return func(log logrus.FieldLogger) (any, error) {
		shared, err := a.shared()
		if err != nil {
			return nil, err
		}
		cluster, err := a.connect()
		adopter := live.NewAdopter(cluster, log).OnStep(shared.Requested.OnStep)

		return restoreitem.NewAdopt(selector, cluster, adopter, log, shared), err
	}
}

// featuresOf returns a function that returns Velero's features, once the flags are parsed. Velero
// starts plugins with the arguments that follow its own "server" (velero
// pkg/plugin/clientmgmt/process/client_builder.go), but BindFlags does not bind --features.
func featuresOf(flags *pflag.FlagSet) func() []string {
	features := flags.StringSlice("features", nil, "What is enabled in the Velero that starts this plugin.")

	return func() []string { return *features }
}

// modifiersOf returns a function that returns the name of the ConfigMap with Velero's default
// resource modifiers, once the flags are parsed; "" if there is none.
func modifiersOf(flags *pflag.FlagSet) func() string {
	name := flags.String(restoreitem.DefaultModifiers, "", "The resource modifiers of restores that name none, of the Velero that starts this plugin.")

	return func() string { return *name }
}
