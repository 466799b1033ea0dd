// The provider command is a Crossplane provider for the cloud in package server, as a plain
// process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis"
	cluster "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/cluster/v1alpha1"
	namespaced "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/namespaced/v1alpha1"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/controller"
)

const (
	// crdInterval is the interval of checks for CRDs that are not served yet.
	crdInterval = time.Second

	// The client-go defaults of 5 and 10 would make a test of a few hundred resources wait for the
	// provider.
	qps   = 200
	burst = 400
)

func main() {
	// The flag --kubeconfig is controller-runtime's. Without it, it uses $KUBECONFIG.
	cloudURL := flag.String("cloud-url", "", "URL of the cloud.")
	clusterName := flag.String("cluster-name", "", "Name of this cluster in calls to the cloud.")
	poll := flag.Duration("poll", 10*time.Second, "How often to look whether a resource drifted.")
	grace := flag.Duration("creation-grace-period", 30*time.Second,
		"How long after a create to wait for what the cloud does not have.")
	scopes := flag.String("scopes", "both", "Which kinds to reconcile: both or cluster.")
	timeout := flag.Duration("timeout", 0, "How long a call to the cloud may take; the default of crossplane-runtime if 0.")
	modes := controller.Modes{}
	flag.Func("async", "Kinds to create as upjet does with UseAsync, such as Database.cloud.example.org,Network.cloud.example.org.",
		func(kinds string) error { return modes.Set(controller.Async, kinds) })
	flag.Func("async-arn", "As --async, for kinds whose ID in the status is not the external name.",
		func(kinds string) error { return modes.Set(controller.AsyncARN, kinds) })
	flag.Func("unruled", "As --async, for kinds whose CRD has no managementPolicies.",
		func(kinds string) error { return modes.Set(controller.Unruled, kinds) })
	debug := flag.Bool("debug", false, "Log every reconcile.")

	flag.Parse()

	l := zap.New(zap.UseDevMode(*debug), zap.WriteTo(os.Stderr))
	ctrl.SetLogger(l)

	o := controller.Options{
		Cloud:       api.NewClient(*cloudURL),
		ClusterName: *clusterName,
		Poll:        *poll,
		Log:         logging.NewLogrLogger(l.WithName("provider-cloud")),

		CreationGracePeriod: *grace,
		Timeout:             *timeout,
		Modes:               modes,
	}

	if err := run(ctrl.SetupSignalHandler(), *cloudURL, *scopes, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run the provider until the context is done.
func run(ctx context.Context, cloudURL, scopes string, o controller.Options) error {
	if cloudURL == "" {
		return errors.New("cannot start the provider: it needs a cloud; set --cloud-url")
	}

	gvs := []schema.GroupVersion{cluster.GroupVersion}

	switch scopes {
	case "both":
		gvs = append(gvs, namespaced.GroupVersion)
	case "cluster":
	default:
		return fmt.Errorf("cannot start the provider: --scopes is both or cluster, not %q", scopes)
	}

	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("cannot find the API server: %w", err)
	}

	cfg.QPS, cfg.Burst = qps, burst

	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), apis.AddToScheme(s)); err != nil {
		return fmt.Errorf("cannot make the scheme: %w", err)
	}

	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: s, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return fmt.Errorf("cannot make the manager: %w", err)
	}

	gvks, err := waitForKinds(ctx, cfg, gvs, o.Log)
	if err != nil {
		return err
	}

	for _, gvk := range gvks {
		o.Log.Info("Starting a controller", "kind", gvk.GroupKind())

		if err := controller.Setup(mgr, gvk, o); err != nil {
			return err
		}
	}

	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("cannot run the manager: %w", err)
	}

	return nil
}

// waitForKinds waits until the API server serves every kind of a scope, and returns all served
// kinds.
func waitForKinds(ctx context.Context, cfg *rest.Config, gvs []schema.GroupVersion, log logging.Logger) ([]schema.GroupVersionKind, error) {
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot make a discovery client: %w", err)
	}

	var served []schema.GroupVersionKind

	err = wait.PollUntilContextCancel(ctx, crdInterval, true, func(context.Context) (bool, error) {
		served = nil
		ready := false

		for _, gv := range gvs {
			l, err := d.ServerResourcesForGroupVersion(gv.String())
			if err != nil && !apierrors.IsNotFound(err) { // A Crossplane v1 cluster need not have the namespaced kinds.
				return false, fmt.Errorf("cannot discover the resources of %s: %w", gv, err)
			}

			before := len(served)
			for _, k := range api.Kinds() {
				if l != nil && slices.ContainsFunc(l.APIResources, func(r metav1.APIResource) bool { return r.Kind == string(k) }) {
					served = append(served, gv.WithKind(string(k)))
				}
			}

			ready = ready || len(served)-before == len(api.Kinds())
		}

		if !ready {
			log.Info("Waiting for the API server to serve every kind of a group: apply the CRDs of this provider", "groups", gvs)
		}

		return ready, nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot find the kinds of this provider: %w", err)
	}

	return served, nil
}
