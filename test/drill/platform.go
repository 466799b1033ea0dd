// Package drill runs the steps that the demo shows and the tests check: it makes a platform and
// instances of it, backs them up, loses them, restores them, and compares the result with what
// there was. It reads only the API server and the cloud's journal, and uses no code of the plugin.
package drill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

const (
	// stepTimeout is how long a step may take on a busy machine.
	stepTimeout = 4 * time.Minute

	group   = "platform.example.org"
	version = "v1alpha1"
)

// A Platform defines a namespace's instances: the XRD for a Crossplane version, and a Composition
// for this namespace only, so that a change to it affects no other.
type Platform struct {
	// Crossplane is the version whose schema is used.
	Crossplane stack.Version
	// Native uses the patch-and-transform Composition that is built into Crossplane v1, instead of
	// a function.
	Native bool
	// Orphan keeps the external resources when MRs are deleted.
	Orphan bool
	// Namespace of the instances.
	Namespace string
	// Prefix of the instances' names, if it is not the namespace: instances that are restored into
	// another namespace keep their names.
	Prefix string
	// UpdatePolicy is the composition update policy of the instances; none if it is "".
	UpdatePolicy string
	// Without names composed resources that the Composition does not have.
	Without []string
	// Twice names composed resources that the Composition has a second time, with "-2" added to the
	// name.
	Twice []string
	// Renamed names composed resources that have "-renamed" added to their name in the Composition.
	Renamed []string
}

// CompositeKind returns the kind of the XRs.
func (p Platform) CompositeKind() string { return p.composite().Kind }

func (p Platform) v1() bool { return p.Crossplane.IsV1() }

// Dir returns the folder of the manifests for the version of Crossplane.
func (p Platform) Dir() string {
	if p.v1() {
		return "v1.20"
	}

	return "v2"
}

// instance returns the kind that users create: claims on v1, XRs on v2.
func (p Platform) instance() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: "Environment"}
}

// composite returns the kind of the XRs.
func (p Platform) composite() schema.GroupVersionKind {
	if p.v1() {
		return schema.GroupVersionKind{Group: group, Version: version, Kind: "XEnvironment"}
	}

	return p.instance()
}

// managed returns the kinds of the composed resources.
func (p Platform) managed() []schema.GroupVersionKind {
	g := "cloud.m.example.org"
	if p.v1() {
		g = "cloud.example.org"
	}
	var kinds []schema.GroupVersionKind
	for _, kind := range []string{"Bucket", "Network", "Database"} {
		kinds = append(kinds, schema.GroupVersionKind{Group: g, Version: version, Kind: kind})
	}

	return kinds
}

// Install applies the XRD and waits until it is Established. Velero sees the new kinds at once only
// after a restart.
func (p Platform) Install(ctx context.Context, c *stack.Cluster) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(root, "example", p.Dir(), "xrd.yaml"))
	if err != nil {
		return fmt.Errorf("cannot read the example: %w", err)
	}
	xrds, err := stack.Parse(b)
	if err != nil {
		return err
	}

	return serve(ctx, c, p.Namespace, xrds...)
}

// Compose applies the Composition and waits for its revision.
func (p Platform) Compose(ctx context.Context, c *stack.Cluster) error {
	u, err := p.Composition()
	if err != nil {
		return err
	}

	return serve(ctx, c, p.Namespace, u)
}

// Resources returns the names of the Composition's resources.
func (p Platform) Resources() ([]string, error) {
	u, err := p.Composition()
	if err != nil {
		return nil, err
	}

	return resourcesOf(u), nil
}

// resourcesOf returns the names of the resources of a Composition or a revision, native or in the
// input of the first step of its pipeline.
func resourcesOf(u *unstructured.Unstructured) []string {
	resources, _, _ := unstructured.NestedSlice(u.Object, "spec", "resources")
	if steps, _, _ := unstructured.NestedSlice(u.Object, "spec", "pipeline"); len(steps) > 0 {
		first, _ := steps[0].(map[string]any)
		resources, _, _ = unstructured.NestedSlice(first, "input", "resources")
	}
	var names []string
	for _, r := range resources {
		if m, ok := r.(map[string]any); ok {
			names = append(names, fmt.Sprint(m["name"]))
		}
	}

	return names
}

func (p Platform) compositionName() string { return "environments-" + p.prefix() }

func (p Platform) prefix() string {
	if p.Prefix != "" {
		return p.Prefix
	}

	return p.Namespace
}

// Composition returns the Composition of the example with the changes that p asks for.
func (p Platform) Composition() (*unstructured.Unstructured, error) {
	root, err := build.Root()
	if err != nil {
		return nil, err
	}
	file := "composition.yaml"
	switch {
	case p.v1() && p.Native:
		file = "composition-native.yaml"
	case p.v1():
		file = "composition-pipeline.yaml"
	}
	b, err := os.ReadFile(filepath.Join(root, "example", p.Dir(), file))
	if err != nil {
		return nil, fmt.Errorf("cannot read the example: %w", err)
	}
	objects, err := stack.Parse(b)
	if err != nil {
		return nil, err
	}
	u := objects[0]
	u.SetName(p.compositionName())
	if p.Native {
		return u, p.edit(u.Object, "spec", "resources")
	}
	steps, _, err := unstructured.NestedSlice(u.Object, "spec", "pipeline")
	if err != nil {
		return nil, fmt.Errorf("cannot read the pipeline of the example: %w", err)
	}
	if err := p.edit(steps[0].(map[string]any), "input", "resources"); err != nil { //nolint:forcetypeassert // The example's steps are objects.
		return nil, err
	}

	return u, unstructured.SetNestedSlice(u.Object, steps, "spec", "pipeline")
}

// edit removes, duplicates and renames resources as p asks, and sets the deletion policy if p keeps
// external resources.
func (p Platform) edit(object map[string]any, path ...string) error {
	resources, _, err := unstructured.NestedSlice(object, path...)
	if err != nil {
		return fmt.Errorf("cannot read the resources of the example: %w", err)
	}
	var kept []any
	for _, r := range resources {
		m := r.(map[string]any) //nolint:forcetypeassert // The example's resources are objects.
		name, _ := m["name"].(string)
		if slices.Contains(p.Without, name) {
			continue
		}
		if p.Orphan {
			if err := p.orphan(m); err != nil {
				return err
			}
		}
		if slices.Contains(p.Renamed, name) {
			m["name"] = name + "-renamed"
		}
		kept = append(kept, m)
		if slices.Contains(p.Twice, name) {
			second := runtime.DeepCopyJSON(m)
			second["name"] = name + "-2"
			kept = append(kept, second)
		}
	}

	return unstructured.SetNestedSlice(object, kept, path...)
}

func (p Platform) orphan(resource map[string]any) error {
	if p.v1() {
		return unstructured.SetNestedField(resource, "Orphan", "base", "spec", "deletionPolicy")
	}

	return unstructured.SetNestedStringSlice(resource, []string{"Observe", "Create", "Update", "LateInitialize"}, "base", "spec", "managementPolicies")
}

func get(ctx context.Context, c *stack.Cluster, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	r, err := c.Resource(ctx, gvk, namespace)
	if err != nil {
		return nil, err
	}
	u, err := r.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot get %s %s/%s: %w", gvk.Kind, namespace, name, err)
	}

	return u, nil
}

// list lists a kind. It ignores the namespace for a cluster-scoped kind.
//
//nolint:unparam // Others may list by labels.
func list(ctx context.Context, c *stack.Cluster, gvk schema.GroupVersionKind, namespace, selector string) ([]unstructured.Unstructured, error) {
	r, err := c.Resource(ctx, gvk, namespace)
	if err != nil {
		return nil, err
	}
	l, err := r.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", gvk.Kind, err)
	}

	return l.Items, nil
}
