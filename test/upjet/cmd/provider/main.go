// The provider command runs the upjet provider of the Terraform provider in package cloud, as a
// plain process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/feature"
	"github.com/crossplane/crossplane-runtime/v2/pkg/gate"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/customresourcesgate"
	ujconfig "github.com/crossplane/upjet/v2/pkg/config"
	ujcontroller "github.com/crossplane/upjet/v2/pkg/controller"
	"github.com/crossplane/upjet/v2/pkg/controller/conversion"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	clusterapis "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/apis/cluster"
	namespacedapis "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/apis/namespaced"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/config"
	cluster "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/internal/controller/cluster"
	namespaced "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/internal/controller/namespaced"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/internal/features"
)

const (
	// reconcileRate is the limit of all kinds together, and of the concurrent reconciles of one
	// kind.
	reconcileRate = 100

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
	webhookPort := flag.Int("webhook-port", 0, "Port of the webhook that converts kinds, on the loopback interface. Without it there is none.")
	debug := flag.Bool("debug", false, "Log every reconcile.")

	flag.Parse()

	l := zap.New(zap.UseDevMode(*debug), zap.WriteTo(os.Stderr))
	ctrl.SetLogger(l)

	if err := run(ctrl.SetupSignalHandler(), *cloudURL, *clusterName, *poll, *webhookPort, logging.NewLogrLogger(l)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the provider until the context is done. The controller of a kind starts when its CRD
// exists.
func run(ctx context.Context, cloudURL, clusterName string, poll time.Duration, webhookPort int, log logging.Logger) error {
	if cloudURL == "" {
		return errors.New("cannot start the provider: it needs a cloud; set --cloud-url")
	}
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("cannot find the API server: %w", err)
	}
	cfg.QPS, cfg.Burst = qps, burst

	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), apiextensionsv1.AddToScheme(s), clusterapis.AddToScheme(s), namespacedapis.AddToScheme(s)); err != nil {
		return fmt.Errorf("cannot make the scheme: %w", err)
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: s, Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: webhookPort, CertDir: os.Getenv("TLS_SERVER_CERTS_DIR")}),
	})
	if err != nil {
		return fmt.Errorf("cannot make the manager: %w", err)
	}

	options := func(p *ujconfig.Provider) ujcontroller.Options {
		o := ujcontroller.Options{
			Options: xpcontroller.Options{
				Logger:                  log,
				GlobalRateLimiter:       ratelimiter.NewGlobal(reconcileRate),
				PollInterval:            poll,
				MaxConcurrentReconciles: reconcileRate,
				Features:                &feature.Flags{},
				Gate:                    &serialGate{Gate: new(gate.Gate[schema.GroupVersionKind])},
			},
			Provider:              p,
			OperationTrackerStore: ujcontroller.NewOperationStore(log),
			SetupFn:               setUp(cloudURL, clusterName),
			StartWebhooks:         webhookPort != 0,
		}
		o.Features.Enable(features.EnableBetaManagementPolicies)

		return o
	}
	o := options(config.Cluster(ctx))
	n := options(config.Namespaced(ctx))
	n.Gate = o.Gate
	if err := conversion.RegisterConversions(o.Provider, n.Provider, s); err != nil {
		return fmt.Errorf("cannot register the conversions: %w", err)
	}
	if err := errors.Join(customresourcesgate.Setup(mgr, o.Options), cluster.SetupGated(mgr, o), namespaced.SetupGated(mgr, n)); err != nil {
		return fmt.Errorf("cannot set up the controllers: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("cannot run the manager: %w", err)
	}

	return nil
}

// serialGate sets up one controller at a time. Crossplane's gate does so at once for all kinds that
// are served, and controller-runtime registers the path of conversions for whoever asks first.
type serialGate struct {
	*gate.Gate[schema.GroupVersionKind]

	mu sync.Mutex
}

// Register has the gate call a function when all kinds are served.
func (g *serialGate) Register(setup func(), kinds ...schema.GroupVersionKind) {
	g.Gate.Register(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		setup()
	}, kinds...)
}
