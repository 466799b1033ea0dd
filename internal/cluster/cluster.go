// Package cluster reads and writes the cluster through the API server; no other package has a client.
// It finds live owners and kinds, lists and watches, retries, and applies changes of package adoption
// without knowing what they are for. Only main.go, the commands in hooks and package adopter import
// it; packages of decisions and actions must not. Begin with Cluster (cluster.go); list.go has how
// objects are read, and apply.go how they are changed.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// rate is how many requests per second the clients send at most. client-go's default of 5 would
// slow down a restore, and plugins don't get Velero's client flags (velero issue #7806). An API
// server handles this rate, and API Priority and Fairness shares it among its clients.
const rate = 500

// FieldManager is this plugin's name in managedFields.
const FieldManager = hold.FieldManager

// Resources is the part of a discovery client that a Cluster needs.
type Resources interface {
	ServerGroups() (*metav1.APIGroupList, error)
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// A Cluster is the API server that Velero backs up or restores to. It is safe for concurrent use.
type Cluster struct {
	client    dynamic.Interface
	discovery Resources
	name      string
	// pages reads objects, and metadataPages reads them without their content, such as the data of
	// Secrets.
	pages, metadataPages pager

	// now is this machine's clock, and clock tells the API server's time.
	now   func() time.Time
	clock *clock

	mu     sync.Mutex
	groups served
	kinds  map[schema.GroupVersion]kinds
	// conversions are the kinds that could not be converted.
	conversions map[schema.GroupVersionKind]unreadableKind
	owners      map[xp.ID][]byte
	ownersSize  int

	// versions are what CRDs define as the versions of their kinds, restoredIndexes what restores
	// have created, and markKeys the keys that sign marks, by Velero's namespace.
	versions        cache[schema.GroupKind, xp.Versions]
	inventories     cache[schema.GroupKind, inventory]
	restoredIndexes cache[schema.GroupKind, restoredIndex]
	markKeys        cache[string, hold.Key]
	definitions     definitions

	silentMu sync.Mutex
	backoff  wait.Backoff
	// silent are the servers that did not answer the last request.
	silent map[string]bool
}

var errNoKubeconfig = errors.New("cannot find a kubeconfig file: name one with --kubeconfig or KUBECONFIG, or run this in a Pod")

// Contexts returns the sorted names of the contexts in the kubeconfig file at path, or in the
// default files if path is "".
func Contexts(path string) ([]string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	config, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}

	return slices.Sorted(maps.Keys(config.Contexts)), nil
}

// Connect returns the cluster of a kubeconfig file and one of its contexts. "" means the file that
// KUBECONFIG names, else the cluster in which the process runs, as for Velero's own clients, and the
// current context.
func Connect(kubeconfig, kubeContext string) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: kubeContext}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errNoKubeconfig
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find out how to reach the API server: %w", err)
	}
	c, err := NewForConfig(config)
	if err != nil {
		return nil, err
	}
	raw, _ := loader.RawConfig() // Without a file there is no context.
	c.name = cmp.Or(kubeContext, raw.CurrentContext, config.Host)

	return c, nil
}

// NewForConfig returns the cluster that the configuration reaches. It sets in config what requests of
// this plugin need, such as their rate.
func NewForConfig(config *rest.Config) (*Cluster, error) {
	config.QPS, config.Burst = rate, rate
	config.UserAgent, config.Timeout = FieldManager, cmp.Or(config.Timeout, requestTimeout)
	// With HTTP/2 a busy API server passes answers between goroutines, which delays watch events by
	// seconds.
	config.NextProtos = []string{"http/1.1"}
	config.DisableCompression = true          // On a local network compression takes longer than it saves.
	config.WarningHandler = rest.NoWarnings{} // Each list of a deprecated kind returns a warning that the creator of the objects got before.
	clock := &clock{}
	config.Wrap(clock.wrap)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the API server: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a discovery client for the API server: %w", err)
	}
	c := New(client, disco)
	c.clock = clock
	if c.pages, err = pagesFrom(config, ""); err != nil {
		return nil, err
	}
	c.metadataPages, err = pagesFrom(config, acceptMetadata)

	return c, err
}

// FailFast makes the first request fail at once if the API server does not answer, as with a wrong
// kubeconfig. After the first answer requests are retried as usual. It returns the Cluster.
func (c *Cluster) FailFast() *Cluster {
	c.silentMu.Lock()
	defer c.silentMu.Unlock()
	c.silent[apiServerName] = true

	return c
}

// Name returns the context of the kubeconfig file, or else the address of the API server.
func (c *Cluster) Name() string { return c.name }

// New returns a Cluster that uses the given clients.
func New(client dynamic.Interface, resources Resources) *Cluster {
	return &Cluster{
		client:        client,
		pages:         pagesOf(client),
		metadataPages: pagesOf(client),
		discovery:     resources,
		now:           time.Now,
		clock:         &clock{},
		kinds:         map[schema.GroupVersion]kinds{},
		conversions:   map[schema.GroupVersionKind]unreadableKind{},
		owners:        map[xp.ID][]byte{},
		backoff:       wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Steps: 6}, // 16 s in all.
		silent:        map[string]bool{},
	}
}

// Get reads one object. It returns the errors of Resource and of the API server, so
// meta.IsNoMatchError and apierrors.IsNotFound match them. An object with an invalid name, or of a
// kind that can't be read, is not found.
func (c *Cluster) Get(ctx context.Context, r xp.Ref) (*unstructured.Unstructured, error) {
	gvr, r, err := c.locate(r)
	if err != nil {
		return nil, err
	}
	var u *unstructured.Unstructured
	err = c.withRetry(ctx.Done(), apiServerName, func() (err error) {
		u, err = c.client.Resource(gvr).Namespace(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})

		return err //nolint:wrapcheck // It is wrapped below.
	})
	if apierrors.IsMethodNotSupported(err) {
		return nil, notFound(gvr, r)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get %s: %w", r, err)
	}

	return u, nil
}

// Now reads the object that r names with a list. It needs the right to list but not the right to
// get, so a command needs only list and patch for a kind. Errors are those of Get.
func (c *Cluster) Now(ctx context.Context, r xp.Ref) (*unstructured.Unstructured, error) {
	gvr, r, err := c.locate(r)
	if err != nil {
		return nil, err
	}
	named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, r.Name).String()}
	found, err := c.List(ctx, r.GroupVersionKind(), r.Namespace, named)
	if err != nil && !apierrors.IsMethodNotSupported(err) {
		return nil, err
	}
	for _, u := range found {
		if xp.RefTo(u).ID() == r.ID() {
			return u, nil
		}
	}

	return nil, notFound(gvr, r)
}

// objects returns the client of a kind in a namespace, which a cluster-scoped kind ignores.
func (c *Cluster) objects(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	gvr, namespaced, err := c.Resource(gvk)
	if err != nil {
		return nil, err
	}
	if !namespaced {
		namespace = ""
	}

	return c.client.Resource(gvr).Namespace(namespace), nil
}

// locate returns the resource of the object that r names, and r without its namespace if the kind
// is cluster-scoped. It returns the errors of Resource, and NotFound for an invalid name.
func (c *Cluster) locate(r xp.Ref) (schema.GroupVersionResource, xp.Ref, error) {
	gvr, namespaced, err := c.Resource(r.GroupVersionKind())
	if err != nil {
		return gvr, r, err
	}
	if !namespaced {
		r.Namespace = ""
	}
	if !xp.IsValidName(r.Namespace, r.Name) {
		return gvr, r, notFound(gvr, r)
	}

	return gvr, r, nil
}

func notFound(gvr schema.GroupVersionResource, r xp.Ref) error {
	return fmt.Errorf("cannot get %s: %w", r, apierrors.NewNotFound(gvr.GroupResource(), r.Name))
}
