package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/copies"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

const composition = "bench"

var (
	compositeKind = schema.GroupVersionKind{Group: "platform.example.org", Version: "v1alpha1", Kind: "Environment"}
	revisionKind  = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}
)

// managedGroup returns the group and version of the composed resources.
func (l *Lab) managedGroup() schema.GroupVersion {
	if l.isUpjets() {
		return schema.GroupVersion{Group: "upjet.m.example.org", Version: "v1beta1"}
	}

	return schema.GroupVersion{Group: "cloud.m.example.org", Version: "v1alpha1"}
}

// managedKinds returns a base resource of each composed kind. Upjet's Buckets have their own names
// in their tags, which the many copies' resources in the cloud would not have.
func (l *Lab) managedKinds() []map[string]any {
	patch := func(field string) []any {
		return []any{map[string]any{"type": "FromCompositeFieldPath", "fromFieldPath": "spec." + field, "toFieldPath": "spec.forProvider." + field}}
	}

	if l.isUpjets() {
		return []map[string]any{
			{"kind": "Network", "forProvider": map[string]any{}, "patches": patch("cidr")},
			{"kind": "Database", "forProvider": map[string]any{"sizeGb": int64(20)}, "patches": []any{}},
		}
	}

	return []map[string]any{
		{"kind": "Bucket", "forProvider": map[string]any{}, "patches": patch("region")},
		{"kind": "Network", "forProvider": map[string]any{}, "patches": patch("cidr")},
		{"kind": "Database", "forProvider": map[string]any{"engine": "postgres", "sizeGB": int64(20)}, "patches": []any{}},
	}
}

// managedResources returns the names of these kinds in requests.
func (l *Lab) managedResources() []string {
	var names []string
	for _, kind := range l.managedKinds() {
		names = append(names, strings.ToLower(fmt.Sprint(kind["kind"]))+"s")
	}

	return names
}

// install installs the example's XRD, with a Composition of the wanted number of MRs.
func (l *Lab) install(ctx context.Context) error {
	if err := (drill.Platform{Crossplane: stack.V2}).Install(ctx, l.cluster); err != nil {
		return err
	}
	if err := l.cluster.ApplyObjects(ctx, l.compositionOf(l.composed)); err != nil {
		return err
	}
	revisions, err := l.cluster.Resource(ctx, revisionKind, "")
	if err != nil {
		return err
	}

	return l.cluster.Wait(ctx, patience, "a revision of the Composition", func(ctx context.Context) error {
		list, err := revisions.List(ctx, metav1.ListOptions{LabelSelector: "crossplane.io/composition-name=" + composition})
		if err == nil && len(list.Items) == 0 {
			err = errors.New("there is none")
		}

		return err
	})
}

// scale makes Crossplane's Deployment have that many replicas, all ready. Crossplane is only a
// process here. Without a Deployment, the plugin takes it for silent, not for stopped, and requests
// reconciles.
func (l *Lab) scale(ctx context.Context, replicas int64) error {
	const name, systemNamespace = "crossplane", "crossplane-system"
	labels := map[string]any{"app": name}
	deployment := func(field string, value map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", field: value,
			"metadata": map[string]any{"name": name, "namespace": systemNamespace, "labels": map[string]any{"app.kubernetes.io/part-of": name}},
		}}
	}
	spec := map[string]any{
		"replicas": replicas, "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": name, "image": "registry.invalid/crossplane"}}},
		},
	}
	if err := l.cluster.ApplyObjects(ctx, deployment("spec", spec)); err != nil {
		return err
	}

	return l.cluster.ApplyStatus(ctx, deployment("status", map[string]any{"replicas": replicas, "readyReplicas": replicas}))
}

// compositionOf returns a Composition of n MRs.
func (l *Lab) compositionOf(n int) *unstructured.Unstructured {
	kinds := l.managedKinds()
	var resources []any
	for i := range n {
		kind := kinds[i%len(kinds)]
		resources = append(resources, map[string]any{
			"name": fmt.Sprintf("part-%03d", i),
			"base": map[string]any{
				"apiVersion": l.managedGroup().String(), "kind": kind["kind"], "spec": map[string]any{"forProvider": kind["forProvider"]},
			},
			"patches": kind["patches"],
		})
	}

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": map[string]any{"name": composition},
		"spec": map[string]any{
			"compositeTypeRef": map[string]any{"apiVersion": compositeKind.GroupVersion().String(), "kind": compositeKind.Kind},
			"mode":             "Pipeline",
			"pipeline": []any{map[string]any{
				"step": "compose", "functionRef": map[string]any{"name": stack.Function},
				"input": map[string]any{"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": resources},
			}},
		},
	}}
}

// grow makes one tree and waits until all of it is Ready.
func (l *Lab) grow(ctx context.Context) error {
	xr := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"region": "eu-central", "cidr": "10.0.0.0/16", "crossplane": map[string]any{"compositionRef": map[string]any{"name": composition}},
	}}}
	xr.SetGroupVersionKind(compositeKind)
	xr.SetNamespace(namespace)
	xr.SetName(copies.Root)
	if err := l.cluster.ApplyObjects(ctx, namespaceObject(), xr); err != nil {
		return err
	}

	return l.cluster.Wait(ctx, patience, "the tree to be Ready", func(ctx context.Context) error { return l.ready(ctx, 1) })
}

func namespaceObject() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}}
}

// ready returns an error unless there are that many trees, and all their objects are Ready and
// Synced.
func (l *Lab) ready(ctx context.Context, trees int) error {
	xrs, err := l.list(ctx, compositeKind)
	if err != nil {
		return err
	}
	if len(xrs) != trees {
		return fmt.Errorf("there are %d XRs, not %d", len(xrs), trees)
	}
	mrs, err := l.managed(ctx)
	if err != nil {
		return err
	}
	if len(mrs) < trees*l.composed {
		return fmt.Errorf("there are %d MRs, not %d", len(mrs), trees*l.composed)
	}
	for _, u := range slices.Concat(xrs, mrs) {
		if err := errors.Join(stack.HasCondition(&u, "Synced", "True"), stack.HasCondition(&u, "Ready", "True")); err != nil {
			return err
		}
	}

	return nil
}

// managed lists the MRs.
func (l *Lab) managed(ctx context.Context) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, kind := range l.managedKinds() {
		mrs, err := l.list(ctx, l.managedGroup().WithKind(fmt.Sprint(kind["kind"])))
		if err != nil {
			return nil, err
		}
		all = append(all, mrs...)
	}

	return all, nil
}

func (l *Lab) list(ctx context.Context, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	r, err := l.cluster.Resource(ctx, kind, namespace)
	if err != nil {
		return nil, err
	}
	list, err := r.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot list kind %s: %w", kind.Kind, err)
	}

	return list.Items, nil
}
