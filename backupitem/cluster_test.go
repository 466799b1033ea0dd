package backupitem

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var errAPI = errors.New("the API server is on holiday")

// A cluster is a fake of the cluster that is backed up.
type cluster struct {
	// versions are the versions of each kind.
	versions xp.Versions
	objects  map[xp.ID]*unstructured.Unstructured
	// broken are the objects that can't be read.
	broken map[xp.ID]bool
	// asked counts the requests for single objects. lists are those for several: kind, namespace
	// and selectors.
	asked map[xp.ID]int
	lists []string
	// settings are the cluster's, and settled counts how often they were read.
	settings map[string]string
	settled  int
	// down makes lists, groups and settings fail.
	down bool
	// made are the namespaces in which a key for marks was made, and keyErr fails that.
	made   []string
	keyErr error
	// modern means that MRs are namespaced.
	modern bool
	// activates means that it has ManagedResourceDefinitions.
	activates bool
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

// checkCost fails if anything was read twice.
func (c *cluster) checkCost(t *testing.T) {
	t.Helper()
	for id, n := range c.asked {
		if n > 1 {
			t.Errorf("the plugin read %v %d times", id, n)
		}
	}
	slices.Sort(c.lists)
	if once := slices.Compact(slices.Clone(c.lists)); len(once) != len(c.lists) {
		t.Errorf("the plugin listed a kind twice: %v", c.lists)
	}
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

func (c *cluster) Each(_ context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions, do func(*unstructured.Unstructured)) error {
	if _, namespaced, err := c.Resource(gvk); err != nil {
		return err
	} else if !namespaced {
		namespace = ""
	}
	c.lists = append(c.lists, gvk.Kind+" "+namespace+" "+options.LabelSelector+options.FieldSelector)
	selector, err := labels.Parse(options.LabelSelector)
	if err != nil || c.down {
		return errors.Join(err, errAPI)
	}
	for id, u := range c.objects {
		kind, _ := strings.CutPrefix(options.FieldSelector, "type=")
		t, _, _ := unstructured.NestedString(u.Object, "type")
		if id.Kind == gvk.Kind && id.Group == gvk.Group && (namespace == "" || namespace == id.Namespace) && selector.Matches(labels.Set(u.GetLabels())) &&
			!c.broken[id] && (options.FieldSelector == "" || kind == t) {
			do(u.DeepCopy())
		}
	}

	return nil
}

func (c *cluster) Served(gk schema.GroupKind) (schema.GroupVersionKind, bool, error) {
	if c.down {
		return schema.GroupVersionKind{}, false, errAPI
	}
	version, ok := map[schema.GroupKind]string{
		{Group: "cloud.example.org", Kind: "ProviderConfig"}: "v1beta1", {Group: "example.org", Kind: "ProviderConfig"}: "v1beta1",
		{Group: "tf.upbound.io", Kind: "ProviderConfig"}: "v1beta1", {Group: "tf.m.upbound.io", Kind: "ClusterProviderConfig"}: "v1beta1",
		{Group: "m.example.org", Kind: "ProviderConfig"}: "v1", {Group: "m.example.org", Kind: "ClusterProviderConfig"}: "v1",
	}[gk]
	if _, _, err := c.Resource(gk.WithVersion("v1")); err == nil && !ok && gk.Kind != "Usage" && !xp.IsProviderConfigKind(gk.Kind) {
		version, ok = "v1", true
	}

	return gk.WithVersion(version), ok, nil
}

func (c *cluster) Versions(context.Context, schema.GroupKind) (xp.Versions, error) {
	return c.versions, nil
}

func (c *cluster) MakeMarkKey(_ context.Context, namespace string) error {
	c.made = append(c.made, namespace)

	return c.keyErr
}

func (c *cluster) Settings(context.Context, string) (map[string]string, error) {
	c.settled++
	if c.down {
		return nil, errAPI
	}

	return c.settings, nil
}

func (c *cluster) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	kinds := map[string]struct {
		resource   string
		namespaced bool
	}{
		xptest.LegacyKind: {"xorders", false}, xptest.ClaimKind: {"orderclaims", true}, xptest.ModernKind: {"orders", true}, xptest.ManagedKind: {"buckets", c.modern},
		"LocalBucket": {"localbuckets", true}, "Job": {"jobs", true}, "Secret": {"secrets", true}, "Namespace": {"namespaces", false}, "EnvironmentConfig": {"environmentconfigs", false}, "ConfigMap": {"configmaps", true}, "CompositeResourceDefinition": {"compositeresourcedefinitions", false},
		"Composition": {"compositions", false}, "CompositionRevision": {"compositionrevisions", false},
		"Usage": {"usages", gvk.Group == xp.GroupProtection}, "PersistentVolumeClaim": {"persistentvolumeclaims", true},
		"VPC": {"vpcs", gvk.Group == "ec2.aws.m.upbound.io"}, "Subnet": {"subnets", false}, "Policy": {"policies", false},
		"ProviderConfig": {"providerconfigs", false}, "ClusterProviderConfig": {"clusterproviderconfigs", false},
	}
	if c.activates {
		for kind, resource := range map[string]string{
			"ManagedResourceDefinition": "managedresourcedefinitions", "ManagedResourceActivationPolicy": "managedresourceactivationpolicies",
		} {
			k := kinds["Composition"]
			k.resource = resource
			kinds[kind] = k
		}
	}
	k, ok := kinds[gvk.Kind]
	k.namespaced = k.namespaced || gvk.Group == "m.example.org" && gvk.Kind == "ProviderConfig"
	if !ok || gvk.Version == "v0gone" {
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

// platform returns what every XR of the legacy kind runs on.
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
