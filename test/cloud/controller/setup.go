package controller

import (
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
)

const (
	// maxConcurrentReconciles of each kind.
	maxConcurrentReconciles = 10

	// unreadyPollInterval is the interval for resources that are being created, if that is shorter
	// than the poll interval.
	unreadyPollInterval = time.Second
)

// Options of the controllers.
type Options struct {
	Cloud       *api.Client
	ClusterName string
	Poll        time.Duration
	Log         logging.Logger

	// CreationGracePeriod is how long after a create the reconciler waits for a resource that the
	// cloud does not show yet. It delays a delete too.
	CreationGracePeriod time.Duration

	// Timeout of a call to the cloud; the default of crossplane-runtime if it is 0.
	Timeout time.Duration

	Modes Modes
}

// Setup adds a controller of the kind to the manager. The manager's scheme must have the kind.
func Setup(mgr ctrl.Manager, gvk schema.GroupVersionKind, o Options) error {
	obj, err := mgr.GetScheme().New(gvk)
	if err != nil {
		return fmt.Errorf("cannot make a %s: %w", gvk.GroupKind(), err)
	}

	mg, ok := obj.(Managed)
	if !ok {
		return fmt.Errorf("cannot reconcile %s: %T is not a managed resource of this provider", gvk.GroupKind(), obj)
	}

	name := managed.ControllerName(gvk.GroupKind().String())
	recorder := mgr.GetEventRecorderFor(name) //nolint:staticcheck // crossplane-runtime v2.3 wraps this recorder.
	r := newReconciler(mgr, gvk, ownsName(mg), event.NewAPIRecorder(recorder), o)

	if err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(controller.Options{MaxConcurrentReconciles: maxConcurrentReconciles, RateLimiter: ratelimiter.NewController()}).
		WithEventFilter(resource.DesiredStateChanged()).
		For(mg).
		Complete(r); err != nil {
		return fmt.Errorf("cannot set up the controller of %s: %w", gvk.GroupKind(), err)
	}

	return nil
}

// newReconciler returns the managed reconciler of the kind, with the default connection publishers
// for either scope: crossplane-runtime v2.3 has no option for others.
func newReconciler(mgr ctrl.Manager, gvk schema.GroupVersionKind, ownsName bool, rec event.Recorder, o Options) *managed.Reconciler {
	mgr = heedless{mgr}

	// Without initializers there is no external-name until the cloud has chosen one. The default
	// initializer would set the object's name.
	initializers := []managed.Initializer{}
	if ownsName {
		initializers = append(initializers, managed.NewNameAsExternalName(mgr.GetClient()))
	}

	mode := o.Modes[gvk.GroupKind()]
	connector := &Connector{
		cloud: o.Cloud, cluster: o.ClusterName, typer: mgr.GetScheme(), mode: mode, tracker: &tracker{},
		secrets: secrets{reader: mgr.GetAPIReader(), writer: mgr.GetClient()},
	}

	options := []managed.ReconcilerOption{
		managed.WithTypedExternalConnector(connector),
		managed.WithInitializers(initializers...),
		managed.WithPollInterval(o.Poll),
		managed.WithPollIntervalHook(pollSoonerUntilReady),
		managed.WithCreationGracePeriod(o.CreationGracePeriod),
		managed.WithLogger(o.Log.WithValues("kind", gvk.GroupKind())),
		managed.WithRecorder(rec),
	}
	if mode != Unruled {
		options = append(options, managed.WithManagementPolicies())
	}
	if o.Timeout > 0 {
		options = append(options, managed.WithTimeout(o.Timeout))
	}

	return managed.NewReconciler(mgr, resource.ManagedKind(gvk), options...)
}

func pollSoonerUntilReady(mg resource.Managed, poll time.Duration) time.Duration {
	if mg.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue {
		return poll
	}

	return min(poll, unreadyPollInterval)
}
