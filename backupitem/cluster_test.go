package backupitem

import (
	"context"
	"errors"

	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var errAPI = errors.New("the API server is on holiday")

// A cluster is one that is backed up.
type cluster struct {
	objects map[xp.ID]*unstructured.Unstructured
	// broken are the objects that the API server fails to give.
	broken map[xp.ID]bool
	// asked counts the requests.
	asked map[xp.ID]int
}

func clusterOf(objects ...*unstructured.Unstructured) *cluster {
	c := &cluster{objects: map[xp.ID]*unstructured.Unstructured{}, broken: map[xp.ID]bool{}, asked: map[xp.ID]int{}}
	for _, u := range objects {
		c.objects[xp.RefTo(u).ID()] = u
	}

	return c
}

func (c *cluster) without(objects ...*unstructured.Unstructured) *cluster {
	for _, u := range objects {
		c.broken[xp.RefTo(u).ID()] = true
	}

	return c
}

func (c *cluster) Get(_ context.Context, r xp.Ref) (*unstructured.Unstructured, error) {
	if _, namespaced, err := c.Resource(r.GroupVersionKind()); err != nil {
		return nil, err
	} else if !namespaced {
		r.Namespace = ""
	}
	c.asked[r.ID()]++
	if c.broken[r.ID()] {
		return nil, errAPI
	}
	if u, ok := c.objects[r.ID()]; ok {
		return u, nil
	}

	return nil, apierrors.NewNotFound(schema.GroupResource{}, r.Name)
}

func (c *cluster) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	kinds := map[string]struct {
		resource   string
		namespaced bool
	}{
		xptest.LegacyKind: {"xorders", false}, xptest.ClaimKind: {"orderclaims", true}, xptest.ModernKind: {"orders", true}, xptest.ManagedKind: {"buckets", false},
		"LocalBucket": {"localbuckets", true}, "Secret": {"secrets", true}, "CompositeResourceDefinition": {"compositeresourcedefinitions", false},
		"Composition": {"compositions", false}, "CompositionRevision": {"compositionrevisions", false},
	}
	k, ok := kinds[gvk.Kind]
	if !ok {
		return schema.GroupVersionResource{}, false, &meta.NoKindMatchError{GroupKind: gvk.GroupKind()}
	}

	return gvk.GroupVersion().WithResource(k.resource), k.namespaced, nil
}

func id(group, resource, namespace, name string) velero.ResourceIdentifier {
	return velero.ResourceIdentifier{GroupResource: schema.GroupResource{Group: group, Resource: resource}, Namespace: namespace, Name: name}
}

func xorder(name string) velero.ResourceIdentifier { return id("example.org", "xorders", "", name) }

func bucket(name string) velero.ResourceIdentifier {
	return id("cloud.example.org", "buckets", "", name)
}

// platform is what every XR of the legacy kind runs on.
func platform() ([]*unstructured.Unstructured, []velero.ResourceIdentifier) {
	x := xptest.XR("x")

	objects := []*unstructured.Unstructured{
		xptest.Revision(xptest.RevisionName, x), xptest.Composition(xptest.CompositionName, x), xptest.XRD("xorders.example.org"),
	}
	ids := []velero.ResourceIdentifier{
		id(xp.GroupAPIExtensions, "compositionrevisions", "", xptest.RevisionName), id(xp.GroupAPIExtensions, "compositions", "", xptest.CompositionName),
		id(xp.GroupAPIExtensions, "compositeresourcedefinitions", "", "xorders.example.org"),
	}

	return objects, ids
}
