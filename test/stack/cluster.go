package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"k8s.io/client-go/rest"
)

// Names of a Cluster's components.
const (
	Etcd               = "etcd"
	APIServer          = "kube-apiserver"
	ControllerManager  = "kube-controller-manager"
	Crossplane         = "crossplane"
	RBACManager        = "crossplane-rbac-manager"
	Function           = "function-patch-and-transform"
	Gate               = "function-gate"
	AutoReady          = "function-auto-ready"
	CloudProvider      = "provider-cloud"
	KubernetesProvider = "provider-kubernetes"
	HelmProvider       = "provider-helm"
	Flux               = "kustomize-controller"
	UpjetProvider      = "provider-upjet"
	Velero             = "velero"
)

// A Version is the program that runs as Crossplane.
type Version string

// Versions of Crossplane.
const (
	None Version = ""
	V1   Version = "crossplane-v1"
	V2   Version = "crossplane-v2"
	V20  Version = "crossplane-v2.0"
	V21  Version = "crossplane-v2.1"
	V22  Version = "crossplane-v2.2"
	V24  Version = "crossplane-v2.4"
)

// IsV1 reports whether the version has claims, and cluster-scoped XRs and MRs.
func (v Version) IsV1() bool { return v == V1 }

// Options of a Cluster.
type Options struct {
	// Name of the cluster and of its directory. It is unique on a Host.
	Name string
	// Crossplane is the version to install. With None there are no Crossplane, function, providers
	// or CRDs of theirs until InstallCrossplane.
	Crossplane Version
	// RBACManager runs Crossplane's RBAC manager, which creates ClusterRoles for each XRD.
	RBACManager bool
	// KubernetesProvider runs provider-kubernetes. It manages objects in its own cluster with a
	// ProviderConfig whose credentials have the source Filesystem and the path
	// KubernetesProviderConfig.
	KubernetesProvider bool
	// HelmProvider runs provider-helm. It takes the same ProviderConfigs as provider-kubernetes.
	HelmProvider bool
	// Flux runs Flux's kustomize-controller, which applies and prunes what the status of a
	// GitRepository names. There is no source-controller: whoever uses the cluster writes that.
	Flux bool
	// UpjetProvider runs the cloud's other provider, which is built with upjet.
	UpjetProvider bool
	// Plugin gives Velero this repository's plugin.
	Plugin bool
	// Velero is the program that runs as Velero; "velero" if empty.
	Velero string
	// Kubernetes is the minor version of API server and controller manager, such as "v1.30"; the
	// default version if empty.
	Kubernetes string
	// VeleroArgs and CrossplaneArgs are added to the servers' command lines and override the
	// arguments there.
	VeleroArgs     []string
	CrossplaneArgs []string
	// ProviderArgs are added to the command line of the cloud's provider, and UpjetArgs to that of
	// the upjet provider.
	ProviderArgs []string
	UpjetArgs    []string
	// LeaderElection makes Crossplane elect a leader before it works, as its chart does. It needs
	// the right to create a mount namespace.
	LeaderElection bool
	// Gate runs function-gate and function-auto-ready, for Compositions that compose resources only
	// once others are observed.
	Gate bool
	// Packaged leaves provider and function to Crossplane's package manager and RunPackages: the
	// cluster starts without their CRDs and objects.
	Packaged bool
	// ControlPlane leaves out all but etcd and the API server.
	ControlPlane bool
	// Clocks are those that differ from the machine's.
	Clocks Clocks
}

// Programs returns the names of the programs that a Host needs for Clusters with these options. For
// a Cluster that gets Crossplane later, pass its options with that version.
func Programs(options ...Options) []string {
	names := []string{S3, Cloud}
	for _, o := range options {
		names = append(names, Etcd, o.kubernetes(APIServer))
		if o.ControlPlane {
			continue
		}
		names = append(names, o.kubernetes(ControllerManager), o.velero(), "velero-plugin-for-aws")
		crossplane := o.Crossplane != None
		for name, wanted := range map[string]bool{
			"plugin": o.Plugin, string(o.Crossplane): crossplane, Function: crossplane, CloudProvider: crossplane, skew: len(o.Clocks) > 0,
			Gate: o.Gate, AutoReady: o.Gate, KubernetesProvider: o.KubernetesProvider, HelmProvider: o.HelmProvider, Flux: o.Flux,
			UpjetProvider: o.UpjetProvider,
		} {
			if wanted {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)

	return slices.Compact(names)
}

// kubernetes returns the name of the program that runs as a component of Kubernetes.
func (o Options) kubernetes(component string) string {
	if o.Kubernetes == "" {
		return component
	}

	return component + "-" + o.Kubernetes
}

func (o Options) velero() string {
	if o.Velero == "" {
		return Velero
	}

	return o.Velero
}

// A Cluster is a Kubernetes control plane with Crossplane, providers and Velero.
type Cluster struct {
	Components
	*client

	host       *Host
	options    Options
	dir        string
	pki        *pki
	config     *rest.Config
	kubeconfig string
	conversion map[string]int // The ports of the conversion webhooks that the providers' CRDs name.
	proxies    []*Proxy
}

var nameRE = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)

// NewCluster starts a Cluster and waits until all of it is ready. If it fails, it removes all that
// it started. The context is for the start only.
func NewCluster(ctx context.Context, h *Host, o Options) (*Cluster, error) {
	if !nameRE.MatchString(o.Name) {
		return nil, fmt.Errorf("cannot name a cluster %q: use lower-case letters, digits and dashes", o.Name)
	}
	c := &Cluster{host: h, options: o, dir: filepath.Join(h.dir, o.Name)}
	c.reaper = h.reaper
	if err := os.MkdirAll(h.dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the Host's directory: %w", err)
	}
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make a directory for cluster %s: %w", o.Name, err)
	}
	h.mu.Lock()
	h.clusters = append(h.clusters, c)
	h.mu.Unlock()

	began := time.Now()
	if err := c.install(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start cluster %s: %w", o.Name, err), c.Destroy())
	}
	c.report(began, "all")

	return c, nil
}

// install starts the control plane, then applies all CRDs, then starts everything else at the same
// time. Velero and the garbage collector discover kinds when they start and then not for a while: a
// backup by a Velero that saw half of the CRDs is PartiallyFailed.
func (c *Cluster) install(ctx context.Context) error {
	if c.options.ControlPlane {
		return c.startControlPlane(ctx)
	}
	var veleroCRDs []byte
	err := parallel(
		func() error { return c.startControlPlane(ctx) },
		func() (err error) { veleroCRDs, err = c.veleroCRDs(ctx); return err },
	)
	if err != nil {
		return err
	}

	if err := c.applyCRDs(ctx, veleroCRDs); err != nil {
		return err
	}

	return startAll(ctx,
		step{true, c.startVelero}, step{true, c.startControllerManager}, step{c.options.Flux, c.startFlux},
		step{c.options.Crossplane != None, c.startAllOfCrossplane},
	)
}

// A step starts a program that may be wanted.
type step struct {
	wanted bool
	start  func(ctx context.Context) error
}

// startAll starts the wanted programs at the same time.
func startAll(ctx context.Context, steps ...step) error {
	var all []func() error
	for _, s := range steps {
		if s.wanted {
			all = append(all, func() error { return s.start(ctx) })
		}
	}

	return parallel(all...)
}

// InstallCrossplane installs Crossplane, and the programs of the options beside it, in a Cluster
// made with None. It accepts objects that exist already, such as CRDs from a restore, and applies
// its own over them as Crossplane does when its Pod starts. Velero sees new kinds after
// RestartVelero. If InstallCrossplane fails, part of it may be installed.
func (c *Cluster) InstallCrossplane(ctx context.Context, version Version) error {
	if c.options.Crossplane != None {
		return fmt.Errorf("cannot install %s in cluster %s: it has %s", version, c.options.Name, c.options.Crossplane)
	}
	c.options.Crossplane = version
	err := c.applyCRDs(ctx, nil)
	if err == nil {
		err = c.startAllOfCrossplane(ctx)
	}
	if err != nil {
		return fmt.Errorf("cannot install %s in cluster %s: %w", version, c.options.Name, err)
	}

	return nil
}

// startAllOfCrossplane starts Crossplane and all programs that run only beside it.
func (c *Cluster) startAllOfCrossplane(ctx context.Context) error {
	o := c.options

	return startAll(ctx,
		step{true, c.startCrossplane}, step{!o.Packaged, c.startProvider}, step{o.RBACManager, c.startRBACManager},
		step{o.KubernetesProvider, c.startKubernetesProvider}, step{o.HelmProvider, c.startHelmProvider}, step{o.UpjetProvider, c.startUpjetProvider},
	)
}

// applyCRDs applies the CRDs of all programs to be installed.
func (c *Cluster) applyCRDs(ctx context.Context, velero []byte) error {
	crds, err := Parse(velero)
	if err != nil {
		return err
	}
	o, crossplane := c.options, c.options.Crossplane != None
	if o.Flux {
		if crds, err = appendSourceCRDs(crds); err != nil {
			return err
		}
	}
	for name, wanted := range map[string]bool{
		string(o.Crossplane): crossplane, CloudProvider: crossplane && !o.Packaged, KubernetesProvider: crossplane && o.KubernetesProvider,
		HelmProvider: crossplane && o.HelmProvider, UpjetProvider: crossplane && o.UpjetProvider, Flux: o.Flux,
	} {
		if !wanted {
			continue
		}
		a, err := program(c.host.set, name)
		if err != nil {
			return err
		}
		objs, err := read(a.Assets)
		if err != nil {
			return err
		}
		if err := c.setConversion(name, objs); err != nil {
			return err
		}
		crds = append(crds, objs...)
	}
	if c.options.Crossplane.IsV1() {
		crds = slices.DeleteFunc(crds, isNamespacedManaged)
	}

	return c.ApplyObjects(ctx, crds...)
}

// Wait is like the function Wait, and ends at once when a component of the cluster or of its Host
// dies.
func (c *Cluster) Wait(ctx context.Context, timeout time.Duration, what string, condition func(context.Context) error) error {
	return Wait(ctx, timeout, what, func(ctx context.Context) error {
		if err := errors.Join(c.Err(), c.host.Err()); err != nil {
			return Never(err)
		}

		return condition(ctx)
	})
}

// Destroy kills the cluster and removes all its data, as if its machines were lost. The Host stays,
// with the backups and the cloud. It fails if the plugin has asked the API server to delete an
// object or to take a finalizer off, which it never may.
func (c *Cluster) Destroy() error {
	err := errors.Join(c.killAll(), c.checkDeletions())
	c.host.mu.Lock()
	c.host.clusters = slices.DeleteFunc(c.host.clusters, func(other *Cluster) bool { return other == c })
	proxies := c.proxies
	c.host.mu.Unlock()
	for _, p := range proxies {
		err = errors.Join(err, p.close())
	}
	if rmErr := os.RemoveAll(c.dir); rmErr != nil {
		err = errors.Join(err, fmt.Errorf("cannot remove the directory of cluster %s: %w", c.options.Name, rmErr))
	}

	return err
}

// run starts a component with the cluster's kubeconfig in its environment and waits until it is
// ready. Without a path it is the program of its name.
func (c *Cluster) run(ctx context.Context, m *component) (err error) {
	began := time.Now()
	if m.path == "" {
		if m.path, err = c.program(m.name); err != nil {
			return err
		}
	}
	m.dir, m.log = filepath.Join(c.dir, m.name), logFile(c.dir, m.name)
	if err := c.skew(m); err != nil {
		return err
	}
	m.env = environment(c.dir, c.host.tmp, append(m.env, "KUBECONFIG="+c.kubeconfig)...)
	if err := c.launch(ctx, m); err != nil {
		return err
	}
	c.report(began, m.name)

	return nil
}

func (c *Cluster) program(name string) (string, error) {
	a, err := program(c.host.set, name)

	return a.Path, err
}

func (c *Cluster) report(began time.Time, what string) {
	c.host.out.report("%s: %s ready after %s", c.options.Name, what, since(began))
}
