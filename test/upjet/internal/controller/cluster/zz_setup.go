package controller

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crossplane/upjet/v2/pkg/controller"

	bucket "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/internal/controller/cluster/upjet/bucket"
	cluster "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/internal/controller/cluster/upjet/cluster"
	database "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/internal/controller/cluster/upjet/database"
	folder "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/internal/controller/cluster/upjet/folder"
	gateway "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/internal/controller/cluster/upjet/gateway"
	network "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/internal/controller/cluster/upjet/network"
	record "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/internal/controller/cluster/upjet/record"
	registry "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/internal/controller/cluster/upjet/registry"
	subnet "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/internal/controller/cluster/upjet/subnet"
	topic "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/internal/controller/cluster/upjet/topic"
	volume "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/internal/controller/cluster/upjet/volume"
)

// Setup creates all controllers with the supplied logger and adds them to
// the supplied manager.
func Setup(mgr ctrl.Manager, o controller.Options) error {
	for _, setup := range []func(ctrl.Manager, controller.Options) error{
		bucket.Setup,
		cluster.Setup,
		database.Setup,
		folder.Setup,
		gateway.Setup,
		network.Setup,
		record.Setup,
		registry.Setup,
		subnet.Setup,
		topic.Setup,
		volume.Setup,
	} {
		if err := setup(mgr, o); err != nil {
			return err
		}
	}
	return nil
}

// SetupGated creates all controllers with the supplied logger and adds them to
// the supplied manager gated.
func SetupGated(mgr ctrl.Manager, o controller.Options) error {
	for _, setup := range []func(ctrl.Manager, controller.Options) error{
		bucket.SetupGated,
		cluster.SetupGated,
		database.SetupGated,
		folder.SetupGated,
		gateway.SetupGated,
		network.SetupGated,
		record.SetupGated,
		registry.SetupGated,
		subnet.SetupGated,
		topic.SetupGated,
		volume.SetupGated,
	} {
		if err := setup(mgr, o); err != nil {
			return err
		}
	}
	return nil
}
