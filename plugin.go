package main

import (
	"context"
	"runtime/debug"
	"sync"

	"github.com/sirupsen/logrus"
	"github.com/spf13/pflag"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework/common"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/backupitem"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/hooks"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/restoreitem"
)

// collectAt is by how many per cent what this process has in memory may grow until what it needs no
// more is collected, instead of Go's 100: it shares the memory of Velero's Pod, and mostly waits.
const collectAt = 50

// serve serves the actions to the Velero that started this process, until it stops it.
func serve() {
	debug.SetGCPercent(collectAt)
	// All actions of a backup or restore run in one process and share what they have asked the API
	// server.
	connect := sync.OnceValues(func() (*live.Cluster, error) { return live.Connect() })
	links := sync.OnceValues(func() (*backupitem.Resolver, error) {
		cluster, err := connect()
		if err != nil {
			return nil, err
		}

		return backupitem.NewResolver(cluster), nil
	})
	// The log of each backup and restore says once what handled it. That of 2-adopt would say it
	// every ten seconds: Velero starts a process to ask after an operation, which makes no other
	// action.
	var once sync.Once
	introduce := func(log logrus.FieldLogger) { once.Do(func() { log.Info(hooks.Name + " " + version()) }) }
	asks := &restoreitem.RequestedItems{}
	doom := restoreitem.NewXRDCheck(restoreitem.XRDReaderFn(func(ctx context.Context, gk schema.GroupKind) (*unstructured.Unstructured, error) {
		cluster, err := connect()
		if err != nil {
			return nil, err
		}

		return cluster.Terminating(ctx, gk)
	}))
	ready := sync.OnceValues(func() (*restoreitem.Readiness, error) {
		cluster, err := connect()
		if err != nil {
			return nil, err
		}

		return restoreitem.NewReadiness(cluster), nil
	})
	order := func(selector velero.ResourceSelector) common.HandlerInitializer {
		return func(log logrus.FieldLogger) (any, error) {
			introduce(log)
			cluster, err := connect()
			if err != nil {
				return nil, err
			}
			r, err := ready()

			return restoreitem.NewOrder(selector, cluster, asks, log).WithClaimKinds(cluster).WithXRDCheck(doom).WithReadiness(r), err
		}
	}
	modifiers := modifiersOf(pflag.CommandLine)
	standDown := restoreitem.NewVeleroFeatures(featuresOf(pflag.CommandLine))
	adopt := func(selector velero.ResourceSelector) common.HandlerInitializer {
		return func(log logrus.FieldLogger) (any, error) {
			cluster, err := connect()

			adopter := live.NewAdopter(cluster, log).OnStep(asks.Lifted)

			return restoreitem.NewAdopt(selector, cluster, adopter, log).WithXRDCheck(doom).WithRequestedItems(asks).WithVeleroFeatures(standDown).ModifiedBy(modifiers), err
		}
	}
	server := framework.NewServer().
		BindFlags(pflag.CommandLine).
		RegisterBackupItemActionV2("velero.crossplane.io/tree", func(log logrus.FieldLogger) (any, error) {
			introduce(log)
			l, err := links()

			return backupitem.NewTree(l, log), err
		}).
		RegisterBackupItemActionV2("velero.crossplane.io/discovery", func(log logrus.FieldLogger) (any, error) {
			cluster, err := connect()

			return backupitem.NewDiscovery(cluster, log), err
		}).
		RegisterItemBlockAction("velero.crossplane.io/block", func(log logrus.FieldLogger) (any, error) {
			l, err := links()

			return backupitem.NewItemBlock(l, log), err
		})
	for _, r := range restoreitem.Orders() {
		server.RegisterRestoreItemActionV2(r.Name, order(r.Selector))
	}
	for _, r := range restoreitem.Adopts() {
		server.RegisterRestoreItemActionV2(r.Name, adopt(r.Selector))
	}
	server.Serve()
}

// featuresOf returns the features that Velero was started with, once the flags are parsed: it
// starts plugins with the arguments that follow its own "server" (velero
// pkg/plugin/clientmgmt/process/client_builder.go), and what it binds for them has no features.
func featuresOf(flags *pflag.FlagSet) func() []string {
	features := flags.StringSlice("features", nil, "What is enabled in the Velero that starts this plugin.")

	return func() []string { return *features }
}

// modifiersOf returns the name of the ConfigMap with the resource modifiers that the Velero applies
// to each restore that names none, as featuresOf does.
func modifiersOf(flags *pflag.FlagSet) func() string {
	name := flags.String(restoreitem.DefaultModifiers, "", "The resource modifiers of restores that name none, of the Velero that starts this plugin.")

	return func() string { return *name }
}
