package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// unservedTTL is for how long a kind counts as not served without another request: a user can name
// any number of kinds. It is short, since a restore may wait for a CRD.
const unservedTTL = 250 * time.Millisecond

// served are the groups and versions that an API server serves.
type served struct {
	groups   []metav1.APIGroup
	versions map[schema.GroupVersion]bool
	read     time.Time
}

// has reports whether a group and version is served; every API server serves v1.
func (s served) has(gv schema.GroupVersion) bool {
	return gv == schema.GroupVersion{Version: "v1"} || s.versions[gv]
}

// versionsOf returns the versions of a group, the preferred one first.
func (s served) versionsOf(group string) []string {
	n := slices.IndexFunc(s.groups, func(g metav1.APIGroup) bool { return g.Name == group })
	if n < 0 {
		return nil
	}
	versions := []string{s.groups[n].PreferredVersion.Version}
	for _, v := range s.groups[n].Versions {
		versions = append(versions, v.Version)
	}

	return versions
}

// kinds are the kinds that a group and version serves.
type kinds struct {
	resources []metav1.APIResource
	read      time.Time
}

func (k kinds) find(kind string) (metav1.APIResource, bool) {
	// A subresource, such as deployments/scale, can have the kind of another resource.
	n := slices.IndexFunc(k.resources, func(r metav1.APIResource) bool { return r.Kind == kind && !strings.Contains(r.Name, "/") })
	if n < 0 {
		return metav1.APIResource{}, false
	}

	return k.resources[n], true
}

// unservedError returns an error that meta.IsNoMatchError matches.
func unservedError(gvk schema.GroupVersionKind) error {
	return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

// IsUnserved reports whether a kind can have no objects: it is not served, or can only be created,
// such as a TokenReview. It is true for NotFound too.
func IsUnserved(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// IgnoreUnserved returns err, or nil if IsUnserved.
func IgnoreUnserved(err error) error {
	if IsUnserved(err) {
		return nil
	}

	return err
}

// Resource returns the resource of a kind, and whether it is namespaced. It returns an error that
// meta.IsNoMatchError matches if the kind is not served. It reads each group and version once. For
// a kind that is not found it asks again after unservedTTL, with one request for all kinds of the
// group and version or for all groups: a CRD may be new.
func (c *Cluster) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gv := gvk.GroupVersion()
	r, ok := c.kinds[gv].find(gvk.Kind)
	if !ok && isValidGroupVersion(gv) && !c.isRecent(c.kinds[gv].read) {
		serves, err := c.serves(gv)
		if err == nil && serves {
			err = c.readKinds(gv)
		}
		if err != nil {
			return schema.GroupVersionResource{}, false, err
		}
		r, ok = c.kinds[gv].find(gvk.Kind)
	}
	if !ok {
		return schema.GroupVersionResource{}, false, unservedError(gvk)
	}

	return gv.WithResource(r.Name), r.Namespaced, nil
}

// isValidGroupVersion reports whether an API server can serve the group and version. They become
// part of a request's path, and a tenant can write any text.
func isValidGroupVersion(gv schema.GroupVersion) bool {
	return (gv.Group == "" || len(validation.IsDNS1123Subdomain(gv.Group)) == 0) && len(validation.IsDNS1035Label(gv.Version)) == 0
}

func (c *Cluster) isRecent(read time.Time) bool {
	return !read.IsZero() && c.now().Sub(read) < unservedTTL
}

// serves reports whether the API server serves a group and version. It reads the groups again if
// the cached ones do not have it and are older than unservedTTL.
func (c *Cluster) serves(gv schema.GroupVersion) (bool, error) {
	if !c.groups.has(gv) && !c.isRecent(c.groups.read) {
		if err := c.readGroups(); err != nil {
			return false, err
		}
	}

	return c.groups.has(gv), nil
}

// readGroups reads and caches the groups and versions.
func (c *Cluster) readGroups() error {
	var list *metav1.APIGroupList
	err := c.withRetry(nil, apiServerName, func() (err error) {
		list, err = c.discovery.ServerGroups()

		return err
	})
	if err != nil {
		return fmt.Errorf("cannot ask which groups are served: %w", err)
	}
	c.setGroups(list.Groups)

	return nil
}

func (c *Cluster) setGroups(groups []metav1.APIGroup) {
	c.groups = served{groups: groups, versions: map[schema.GroupVersion]bool{}, read: c.now()}
	for _, g := range groups {
		for _, v := range g.Versions {
			c.groups.versions[schema.GroupVersion{Group: g.Name, Version: v.Version}] = true
		}
	}
}

// serverOf returns a name for the server of a group and version.
func serverOf(gv schema.GroupVersion) string { return "what serves " + gv.String() }

// readKinds reads and caches the kinds of a group and version. An extension API server may answer.
func (c *Cluster) readKinds(gv schema.GroupVersion) error {
	list := &metav1.APIResourceList{}
	err := c.withRetry(nil, serverOf(gv), func() (err error) {
		list, err = c.discovery.ServerResourcesForGroupVersion(gv.String())

		return err
	})
	if apierrors.IsNotFound(err) {
		list, err = &metav1.APIResourceList{}, nil // The group and version is gone since the groups were read.
	}
	if err != nil {
		return fmt.Errorf("cannot ask which kinds %s serves: %w", gv, err)
	}
	c.kinds[gv] = kinds{resources: list.APIResources, read: c.now()}

	return nil
}

// cachedGroups returns the groups and versions that were served when they were last read.
func (c *Cluster) cachedGroups() (served, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups.read.IsZero() {
		if err := c.readGroups(); err != nil {
			return served{}, err
		}
	}

	return c.groups, nil
}

// cachedKinds returns the kinds of a served group and version, none if it is gone since.
func (c *Cluster) cachedKinds(gv schema.GroupVersion) (kinds, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds[gv].read.IsZero() {
		if err := c.readKinds(gv); err != nil {
			return kinds{}, err
		}
	}

	return c.kinds[gv], nil
}

// IsKnown reports whether a kind was served when its group and version was last read.
func (c *Cluster) IsKnown(gvk schema.GroupVersionKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.kinds[gvk.GroupVersion()].find(gvk.Kind)

	return ok
}

// LookUp returns an error that IsUnserved matches if a kind was not served when the kinds were last
// read. It sends requests only for groups and versions that are served and were not read, because
// they did not answer or because the server can't list all at once.
func (c *Cluster) LookUp(gvk schema.GroupVersionKind) error {
	groups, err := c.cachedGroups()
	if err != nil {
		return err
	}
	if groups.has(gvk.GroupVersion()) {
		cached, err := c.cachedKinds(gvk.GroupVersion())
		if _, ok := cached.find(gvk.Kind); ok || err != nil {
			return err
		}
	}

	return unservedError(gvk)
}

// Served returns a kind in the version in which it was served when its group was first read, in the
// preferred version if possible; ok is false if it was not served.
func (c *Cluster) Served(gk schema.GroupKind) (gvk schema.GroupVersionKind, ok bool, err error) {
	versions := []string{"v1"}
	if gk.Group != "" {
		groups, err := c.cachedGroups()
		if err != nil {
			return gvk, false, err
		}
		versions = groups.versionsOf(gk.Group)
	}
	for _, v := range versions {
		gvk = gk.WithVersion(v)
		cached, err := c.cachedKinds(gvk.GroupVersion())
		if _, ok := cached.find(gvk.Kind); ok || err != nil {
			return gvk, ok, err
		}
	}

	return gvk, false, nil
}

// Kinds returns the kinds in one of the categories that can be listed, each in the version that its
// group prefers, else in the first version that has it. The map has the groups and versions that
// could not be read, such as those of an extension API server that is down, with the reason.
func (c *Cluster) Kinds(ctx context.Context, categories ...string) ([]schema.GroupVersionKind, map[string]string, error) {
	groups, err := c.cachedGroups()
	if err != nil {
		return nil, nil, err
	}
	var found []schema.GroupVersionKind
	unread := map[string]string{}
	for _, g := range groups.groups {
		seen := map[string]bool{}
		for _, version := range groups.versionsOf(g.Name) {
			if err := ctx.Err(); err != nil {
				return nil, nil, fmt.Errorf("cannot ask which kinds are served: %w", err)
			}
			gv := schema.GroupVersion{Group: g.Name, Version: version}
			cached, err := c.cachedKinds(gv)
			if err != nil {
				unread[gv.String()] = err.Error()

				continue
			}
			for _, r := range cached.resources {
				if seen[r.Kind] || !slices.Contains(r.Verbs, "list") || !slices.ContainsFunc(r.Categories, func(s string) bool { return slices.Contains(categories, s) }) {
					continue
				}
				seen[r.Kind] = true
				found = append(found, gv.WithKind(r.Kind))
			}
		}
	}

	return found, unread, nil
}

// IsReconciled reports whether a kind is served and Crossplane or a provider reconciles it,
// according to its categories.
func (c *Cluster) IsReconciled(_ context.Context, gvk schema.GroupVersionKind) (bool, error) {
	categories, err := c.categoriesOf(gvk)

	return xp.AreReconciled(categories), err
}

// IsClaimKind reports whether a kind is served and is one of claims, according to its categories.
func (c *Cluster) IsClaimKind(gvk schema.GroupVersionKind) (bool, error) {
	categories, err := c.categoriesOf(gvk)

	return slices.Contains(categories, xp.CategoryClaim), err
}

// categoriesOf returns the categories of a kind, none if it is not served.
func (c *Cluster) categoriesOf(gvk schema.GroupVersionKind) ([]string, error) {
	if _, _, err := c.Resource(gvk); meta.IsNoMatchError(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	cached, err := c.cachedKinds(gvk.GroupVersion())
	r, _ := cached.find(gvk.Kind)

	return r.Categories, err
}
