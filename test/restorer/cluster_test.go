package restorer

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/restorer/forest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

const patience = 2 * time.Minute

// A cluster is an API server that serves the kinds of a forest, with the garbage collector and
// without Crossplane.
type cluster struct {
	*stack.Cluster

	dynamic   dynamic.Interface
	discovery *discovery.DiscoveryClient
	places    []string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	ctx := t.Context()
	options := stack.Options{Name: "forest"}
	set, err := build.Ensure(ctx, os.Stderr, stack.Programs(options)...)
	must(t, err)
	host, err := stack.NewHost(ctx, set, "", os.Stderr)
	must(t, err)
	t.Cleanup(func() { must(t, host.Close()) })
	c := &cluster{places: []string{"team-a", "team-b", "team-c", "infra", "copy-a", "copy-b"}}
	c.Cluster, err = stack.NewCluster(ctx, host, options)
	must(t, err)
	config := c.REST()
	config.QPS, config.Burst = 2000, 4000
	c.dynamic, err = dynamic.NewForConfig(config)
	must(t, err)
	c.discovery, err = discovery.NewDiscoveryClientForConfig(config)
	must(t, err)
	// The garbage collector discovers kinds when it starts, and then not for a while.
	must(t, c.Kill(stack.ControllerManager))
	for _, k := range forest.Kinds() {
		if strings.Contains(k.Group, ".") {
			must(t, c.ApplyObjects(ctx, crd(k)))
		}
	}
	must(t, c.Start(ctx, stack.ControllerManager))
	for _, name := range c.places {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
		must(t, c.ApplyObjects(ctx, u))
	}

	return c
}

// crd serves a kind that may have any fields.
func crd(k forest.Kind) *unstructured.Unstructured {
	scope := "Cluster"
	if k.Namespaced {
		scope = "Namespaced"
	}
	names := map[string]any{"kind": k.Kind, "plural": k.Plural, "singular": strings.ToLower(k.Kind), "listKind": k.Kind + "List"}
	if c := k.Category(); c != "" {
		names["categories"] = []any{"crossplane", c}
	}

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name":        k.Resource().String(),
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for tests"},
		},
		"spec": map[string]any{
			"group": k.Group, "scope": scope, "names": names,
			"versions": []any{map[string]any{
				"name": k.Version, "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

func resource(k forest.Kind) schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.Plural)
}

// all returns the cluster's objects of the kinds and namespaces of a forest.
func (c *cluster) all(ctx context.Context, t *testing.T) map[xp.ID]*unstructured.Unstructured {
	t.Helper()
	found := map[xp.ID]*unstructured.Unstructured{}
	for _, k := range forest.Kinds() {
		if k.Kind == "Namespace" {
			continue
		}
		list, err := c.dynamic.Resource(resource(k)).List(ctx, metav1.ListOptions{})
		must(t, err)
		for i := range list.Items {
			u := &list.Items[i]
			if c.isGrown(u) {
				found[xp.RefTo(u).ID()] = u
			}
		}
	}

	return found
}

// isGrown reports whether an object can belong to a forest.
func (c *cluster) isGrown(u *unstructured.Unstructured) bool {
	if u.GetName() == "kube-root-ca.crt" {
		return false
	}
	for _, place := range c.places {
		if u.GetNamespace() == place {
			return true
		}
	}

	return u.GetNamespace() == ""
}

// clear deletes all objects that can belong to a forest.
func (c *cluster) clear(ctx context.Context, t *testing.T) {
	t.Helper()
	must(t, c.Wait(ctx, patience, "the forest to be gone", func(ctx context.Context) error {
		left := c.all(ctx, t)
		for id, u := range left {
			k, _ := forest.KindOf(schema.GroupKind{Group: id.Group, Kind: id.Kind})
			client := c.dynamic.Resource(resource(k)).Namespace(id.Namespace)
			_, err := client.Patch(ctx, id.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			if err == nil && u.GetDeletionTimestamp() == nil {
				err = client.Delete(ctx, id.Name, metav1.DeleteOptions{})
			}
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("cannot delete %v: %w", id, err)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("%d objects are left", len(left))
		}

		return nil
	}))
}

// collect waits until the garbage collector has run: it deletes a new object of each kind with an
// owner that never existed.
func (c *cluster) collect(ctx context.Context, t *testing.T) {
	t.Helper()
	canaries := map[schema.GroupVersionResource]string{}
	for _, k := range forest.Kinds() {
		if k.Kind == "Namespace" || k.Group == "apps" {
			continue
		}
		ns := ""
		if k.Namespaced {
			ns = c.places[0]
		}
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "canary", "ownerReferences": []any{map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "name": "never", "uid": "00000000-0000-4000-8000-000000000000",
		}}}}}
		u.SetGroupVersionKind(k.GroupVersionKind)
		_, err := c.dynamic.Resource(resource(k)).Namespace(ns).Create(ctx, u, metav1.CreateOptions{})
		must(t, err)
		canaries[resource(k)] = ns
	}
	must(t, c.Wait(ctx, patience, "the garbage collector", func(ctx context.Context) error {
		for gvr, ns := range canaries {
			_, err := c.dynamic.Resource(gvr).Namespace(ns).Get(ctx, "canary", metav1.GetOptions{})
			if err == nil {
				return fmt.Errorf("the canary of %s is alive", gvr.GroupResource())
			}
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("cannot look for the canary of %s: %w", gvr.GroupResource(), err)
			}
			delete(canaries, gvr)
		}

		return nil
	}))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
