package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// unservedTTL is for how long a kind counts as not served without another request: a user can name
// any number of kinds. It is short, since a restore may wait for a CRD.
const unservedTTL = 250 * time.Millisecond

// served are the groups and versions that an API server serves.
type served struct {
	list     *metav1.APIGroupList
	versions map[schema.GroupVersion]bool
	read     time.Time
}

// kinds are the kinds that a group and version serves.
type kinds struct {
	list *metav1.APIResourceList
	read time.Time
}

func (k kinds) find(kind string) (metav1.APIResource, bool) {
	if k.list == nil {
		return metav1.APIResource{}, false
	}

	return find(k.list, kind)
}

// Resource returns the resource of a kind, and whether it is namespaced. It returns an error that
// meta.IsNoMatchError matches if the kind is not served. It reads each group and version once. For
// a kind that is not found it asks again after unservedTTL, with one request for all kinds of the
// group and version or for all groups: a CRD may be new.
func (c *Cluster) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gv := gvk.GroupVersion()
	if r, ok := c.kinds[gv].find(gvk.Kind); ok {
		return gv.WithResource(r.Name), r.Namespaced, nil
	}
	unserved := &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	if !isValidGroupVersion(gv) || c.isRecent(c.kinds[gv].read) {
		return schema.GroupVersionResource{}, false, unserved
	}
	if ok, err := c.serves(gv); err != nil || !ok {
		if err == nil {
			err = unserved
		}

		return schema.GroupVersionResource{}, false, err
	}
	list, err := c.readKinds(gv)
	if err != nil {
		return schema.GroupVersionResource{}, false, err
	}
	r, ok := find(list, gvk.Kind)
	if !ok {
		return schema.GroupVersionResource{}, false, unserved
	}

	return gv.WithResource(r.Name), r.Namespaced, nil
}

func (c *Cluster) isRecent(read time.Time) bool {
	return !read.IsZero() && c.now().Sub(read) < unservedTTL
}

// serves reports whether the API server serves a group and version. It reads the groups again if
// the cached ones do not have it and are older than unservedTTL.
func (c *Cluster) serves(gv schema.GroupVersion) (bool, error) {
	if gv.Group == "" {
		return gv.Version == "v1", nil // Every API server serves it.
	}
	if c.groups.versions[gv] || c.isRecent(c.groups.read) {
		return c.groups.versions[gv], nil
	}
	if err := c.readGroups(); err != nil {
		return false, err
	}

	return c.groups.versions[gv], nil
}

// readGroups reads and caches the groups and versions.
func (c *Cluster) readGroups() error {
	var groups *metav1.APIGroupList
	err := c.withRetry(nil, apiServerName, func() (err error) {
		groups, err = c.discovery.ServerGroups()

		return err
	})
	if err != nil {
		return fmt.Errorf("cannot ask which groups are served: %w", err)
	}
	c.setGroups(groups)

	return nil
}

func (c *Cluster) setGroups(groups *metav1.APIGroupList) {
	c.groups = served{list: groups, versions: map[schema.GroupVersion]bool{}, read: c.now()}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			c.groups.versions[schema.GroupVersion{Group: g.Name, Version: v.Version}] = true
		}
	}
}

// Served returns a kind in the version in which it was served when its group was first read, in the
// preferred version if possible; ok is false if it was not served.
func (c *Cluster) Served(gk schema.GroupKind) (gvk schema.GroupVersionKind, ok bool, err error) {
	versions := []string{"v1"}
	if gk.Group != "" {
		groups, err := c.groupList()
		if err != nil {
			return gvk, false, err
		}
		versions = versionsOf(groups, gk.Group)
	}
	for _, v := range versions {
		gvk = gk.WithVersion(v)
		list, err := c.kindsOf(gvk.GroupVersion())
		if err != nil {
			return gvk, false, err
		}
		if _, ok = find(list, gvk.Kind); ok {
			return gvk, true, nil
		}
	}

	return gvk, false, nil
}

// versionsOf returns the versions of a group, the preferred one first.
func versionsOf(groups *metav1.APIGroupList, group string) []string {
	n := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == group })
	if n < 0 {
		return nil
	}
	versions := []string{groups.Groups[n].PreferredVersion.Version}
	for _, v := range groups.Groups[n].Versions {
		versions = append(versions, v.Version)
	}

	return versions
}

// kindsOf returns the cached kinds of a served group and version, none if it is gone since.
func (c *Cluster) kindsOf(gv schema.GroupVersion) (*metav1.APIResourceList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kinds[gv]; k.list != nil {
		return k.list, nil
	}

	return c.readKinds(gv)
}

// serverOf returns a name for the server of a group and version.
func serverOf(gv schema.GroupVersion) string { return "what serves " + gv.String() }

// readKinds reads and caches the kinds of a group and version. An extension API server may answer.
func (c *Cluster) readKinds(gv schema.GroupVersion) (list *metav1.APIResourceList, err error) {
	err = c.withRetry(nil, serverOf(gv), func() error {
		list, err = c.discovery.ServerResourcesForGroupVersion(gv.String())

		return err
	})
	if apierrors.IsNotFound(err) {
		list, err = &metav1.APIResourceList{}, nil // The group and version is gone since the groups were read.
	}
	if err != nil {
		return nil, fmt.Errorf("cannot ask which kinds %s serves: %w", gv, err)
	}
	c.kinds[gv] = kinds{list: list, read: c.now()}

	return list, nil
}

// isValidGroupVersion reports whether an API server can serve the group and version. They become
// part of a request's path, and a tenant can write any text.
func isValidGroupVersion(gv schema.GroupVersion) bool {
	return (gv.Group == "" || len(validation.IsDNS1123Subdomain(gv.Group)) == 0) && len(validation.IsDNS1035Label(gv.Version)) == 0
}

func find(list *metav1.APIResourceList, kind string) (metav1.APIResource, bool) {
	for _, r := range list.APIResources {
		// A subresource, such as deployments/scale, can have the kind of another resource.
		if r.Kind == kind && !strings.Contains(r.Name, "/") {
			return r, true
		}
	}

	return metav1.APIResource{}, false
}
