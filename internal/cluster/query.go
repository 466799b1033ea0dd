package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Composing returns the XRs of a kind that name the Composition, and for which hold.Key.Composes
// is true. It lists the kind each time.
func (c *Cluster) Composing(ctx context.Context, key hold.Key, gvk schema.GroupVersionKind, composition string) ([]xp.Ref, error) {
	var composing []xp.Ref
	err := c.Each(ctx, gvk, "", metav1.ListOptions{}, func(u *unstructured.Unstructured) {
		if xp.CompositeFrom(u).Composition() == composition && key.Composes(u) {
			composing = append(composing, xp.RefTo(u))
		}
	})

	return composing, IgnoreUnserved(err)
}

// Installation returns the Deployment of Crossplane, or the zero value if there is none.
func (c *Cluster) Installation(ctx context.Context) (adoption.Installation, error) {
	found, err := c.List(ctx, adoption.KindDeployment, "", metav1.ListOptions{LabelSelector: adoption.LabelCrossplane})
	if err != nil {
		return adoption.Installation{}, err
	}

	return adoption.FindInstallation(found), nil
}

// WithoutPlugin returns the Deployment of Velero's server in a namespace if that does not bring this
// plugin. ok is false if it does, or if there is no such Deployment.
func (c *Cluster) WithoutPlugin(ctx context.Context, velero string) (server xp.Ref, ok bool, err error) {
	found, err := c.List(ctx, adoption.KindDeployment, velero, metav1.ListOptions{})
	if err != nil {
		return xp.Ref{}, false, err
	}
	server, ok = adoption.WithoutPlugin(found)

	return server, ok, nil
}

// Rights returns what the bindings of users grant to packages that run in Crossplane's namespace.
// It lists each kind once. It lists packages only if a binding seems to name a package's revision.
func (c *Cluster) Rights(ctx context.Context, namespace string) (diagnosis.Rights, error) {
	r := diagnosis.Rights{Namespace: namespace}
	read := func(kinds ...schema.GroupVersionKind) error {
		for _, gvk := range kinds {
			if err := IgnoreUnserved(c.Each(ctx, gvk, "", metav1.ListOptions{}, r.Add)); err != nil {
				return err
			}
		}

		return nil
	}
	if err := read(xp.KindClusterRoleBinding, xp.KindRoleBinding); err != nil || !r.NamesRevisions() {
		return diagnosis.Rights{}, err
	}
	if err := read(xp.KindProviderRevision, xp.KindFunctionRevision, xp.KindRuntimeConfig); err != nil {
		return diagnosis.Rights{}, err
	}

	return r, nil
}

// Schedules returns the CronOperations and WatchOperations, which Crossplane has from v2.0 on.
func (c *Cluster) Schedules(ctx context.Context) ([]*unstructured.Unstructured, error) {
	return c.ListServed(ctx, xp.ScheduleKinds(), []string{metav1.NamespaceAll}, metav1.ListOptions{})
}

// ListServed returns the objects of those kinds that are served, in some namespaces or everywhere.
// In namespaces it skips cluster-scoped kinds.
func (c *Cluster) ListServed(
	ctx context.Context, kinds []schema.GroupKind, namespaces []string, options metav1.ListOptions,
) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, gk := range kinds {
		gvk, ok, err := c.Served(gk)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if _, namespaced, err := c.Resource(gvk); err == nil && !namespaced && namespaces[0] != metav1.NamespaceAll {
			continue
		}
		for _, namespace := range namespaces {
			found, err := c.List(ctx, gvk, namespace, options)
			if IgnoreUnserved(err) != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}

	return all, nil
}

// Read returns the existing objects of refs. It lists each kind once, in the namespace or in all if
// that is "", and reads objects of other namespaces one by one.
func (c *Cluster) Read(ctx context.Context, refs []xp.Ref, namespace string) (map[xp.ID]*unstructured.Unstructured, error) {
	objects, read := map[xp.ID]*unstructured.Unstructured{}, map[schema.GroupVersionKind]bool{}
	meant := sets.New[xp.ID]()
	for _, r := range refs {
		meant.Insert(r.ID())
	}
	for _, r := range refs {
		if namespace != "" && r.Namespace != "" && r.Namespace != namespace {
			u, err := c.Now(ctx, r)
			if IgnoreUnserved(err) != nil {
				return nil, err
			}
			if err == nil {
				objects[r.ID()] = u
			}

			continue
		}
		gvk := r.GroupVersionKind()
		if read[gvk] {
			continue
		}
		read[gvk] = true
		err := c.Each(ctx, gvk, namespace, metav1.ListOptions{}, func(u *unstructured.Unstructured) {
			if id := xp.RefTo(u).ID(); meant.Has(id) {
				objects[id] = u
			}
		})
		if IgnoreUnserved(err) != nil {
			return nil, err
		}
	}

	return objects, nil
}

// definitionsTTL is for how long a list of XRDs is cached. A user may delete one during a restore.
const definitionsTTL = 5 * time.Second

// definitions caches the XRDs that are being deleted.
type definitions struct {
	mu          sync.Mutex
	terminating []*unstructured.Unstructured
	read        time.Time
}

// Terminating returns the XRD that defines the kind of an XR or claim if that XRD is being deleted,
// else nil. It lists the XRDs at most once per definitionsTTL.
func (c *Cluster) Terminating(ctx context.Context, gk schema.GroupKind) (*unstructured.Unstructured, error) {
	d := &c.definitions
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.read.IsZero() || time.Since(d.read) > definitionsTTL {
		var terminating []*unstructured.Unstructured
		err := c.Each(ctx, xp.KindDefinition, "", metav1.ListOptions{}, func(u *unstructured.Unstructured) {
			if u.GetDeletionTimestamp() != nil {
				terminating = append(terminating, u)
			}
		})
		if IgnoreUnserved(err) != nil {
			return nil, err
		}
		d.terminating, d.read = terminating, time.Now()
	}
	n := slices.IndexFunc(d.terminating, func(u *unstructured.Unstructured) bool { return xp.Defines(u, gk) })
	if n < 0 {
		return nil, nil //nolint:nilnil // nil means that no XRD is terminating.
	}

	return d.terminating[n], nil
}

// Places are where to look for claims and XRs; the zero value is everywhere.
type Places struct {
	// Namespaces are the only ones to look into.
	Namespaces []string
	// Cluster selects cluster-scoped claims and XRs.
	Cluster bool
}

// Roots are claims and XRs.
type Roots struct {
	Objects []*unstructured.Unstructured
	// Kinds is how many kinds were read, and Unread are the errors of the others.
	Kinds  int
	Unread map[schema.GroupVersionKind]error
	// Unasked are the groups and versions whose kinds could not be read, with the reason.
	Unasked map[string]string
}

// Roots reads the claims and XRs in the places that the selector selects. It needs only the right
// to list.
func (c *Cluster) Roots(ctx context.Context, in Places, selector string) (Roots, error) {
	kinds, unasked, err := c.Kinds(ctx, xp.CategoryClaim, xp.CategoryComposite)
	if err != nil {
		return Roots{}, err
	}
	roots := Roots{Unread: map[schema.GroupVersionKind]error{}, Unasked: unasked}
	for _, gvk := range kinds {
		_, namespaced, err := c.Resource(gvk)
		if err != nil {
			roots.Unread[gvk] = err

			continue
		}
		var namespaces []string
		switch {
		case len(in.Namespaces) == 0 && !in.Cluster, !namespaced && in.Cluster:
			namespaces = []string{metav1.NamespaceAll}
		case namespaced:
			namespaces = in.Namespaces
		}
		for _, namespace := range namespaces {
			found, err := c.List(ctx, gvk, namespace, metav1.ListOptions{LabelSelector: selector})
			if IgnoreUnserved(err) != nil {
				roots.Unread[gvk] = err

				continue
			}
			roots.Objects = slices.Concat(roots.Objects, found)
		}
		if len(namespaces) > 0 && roots.Unread[gvk] == nil {
			roots.Kinds++
		}
	}

	return roots, ctx.Err()
}

// SettingsLabels select the ConfigMap of settings: the label of all Velero plugins, and this one's.
const SettingsLabels = "velero.io/plugin-config,velero.crossplane.io/settings"

// Settings returns the data of the ConfigMap of settings in Velero's namespace; nil if there is
// none. It returns a setting.InvalidError if there are several, since one would be ignored.
func (c *Cluster) Settings(ctx context.Context, namespace string) (map[string]string, error) {
	found, err := c.SettingsIn(ctx, namespace)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, nil //nolint:nilnil // nil means the default settings.
	case len(found) > 1:
		return nil, setting.InvalidError{Err: fmt.Errorf("cannot choose between the ConfigMaps %s and %s, which both have the labels %s; remove one", found[0].Name,
			found[1].Name, SettingsLabels)}
	default:
		return found[0].Data, nil
	}
}

// SettingsIn returns all ConfigMaps of settings in the namespace; there should be at most one.
func (c *Cluster) SettingsIn(ctx context.Context, namespace string) ([]setting.Place, error) {
	found, err := c.List(ctx, schema.GroupVersionKind{Version: "v1", Kind: setting.KindConfigMap}, namespace, metav1.ListOptions{LabelSelector: SettingsLabels})
	if err != nil {
		return nil, fmt.Errorf("cannot find the settings: %w", err)
	}
	var places []setting.Place
	for _, u := range found {
		data, err := dataOf(u)
		if err != nil {
			return nil, err
		}
		places = append(places, setting.Place{Kind: setting.KindConfigMap, Namespace: namespace, Name: u.GetName(), Data: data})
	}

	return places, nil
}

// SettingsOf returns the annotations of a Velero Backup or Restore as a place with settings.
func (c *Cluster) SettingsOf(ctx context.Context, kind, namespace, name string) (setting.Place, error) {
	u, err := c.Get(ctx, xp.Ref{APIVersion: KindRestore.GroupVersion().String(), Kind: kind, Namespace: namespace, Name: name})
	if IsUnserved(err) {
		return setting.Place{}, fmt.Errorf("cannot find the %s %s/%s: there is none of this name; see: velero %s get -n %s", kind, namespace, name,
			strings.ToLower(kind), namespace)
	}
	if err != nil {
		return setting.Place{}, err
	}

	return setting.Place{Kind: kind, Namespace: namespace, Name: name, Data: u.GetAnnotations()}, nil
}

// Restore returns a Velero Restore. Errors are those of Get.
func (c *Cluster) Restore(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	return c.Get(ctx, xp.Ref{APIVersion: KindRestore.GroupVersion().String(), Kind: KindRestore.Kind, Namespace: namespace, Name: name})
}

// ConfigMap returns the data of a ConfigMap. Errors are those of Get.
func (c *Cluster) ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	u, err := c.Get(ctx, xp.Ref{APIVersion: "v1", Kind: setting.KindConfigMap, Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}

	return dataOf(u)
}

func dataOf(configMap *unstructured.Unstructured) (map[string]string, error) {
	data, _, err := unstructured.NestedStringMap(configMap.Object, "data")
	if err != nil {
		return nil, fmt.Errorf("cannot read the ConfigMap %s/%s: %w", configMap.GetNamespace(), configMap.GetName(), err)
	}

	return data, nil
}
