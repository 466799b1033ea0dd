package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// keepStatus extends the XRD's schema, so that XRs keep what functions write into their status.
func (s *suite) keepStatus(t *testing.T, c *stack.Cluster) {
	t.Helper()
	ctx := t.Context()
	name, plural := "environments.platform.example.org", "environments"
	if s.version.IsV1() {
		name, plural = "x"+name, "x"+plural
	}
	xrd, err := get(ctx, c, schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositeResourceDefinition"}, "", name)
	must(t, err)
	versions, _, err := unstructured.NestedSlice(xrd.Object, "spec", "versions")
	must(t, err)
	status := map[string]any{"type": "object", "properties": map[string]any{"address": map[string]any{"type": "string"}}}
	must(t, unstructured.SetNestedField(versions[0].(map[string]any), status, "schema", "openAPIV3Schema", "properties", "status")) //nolint:forcetypeassert // It is an object.
	must(t, drill.Patch(ctx, c, xrd, map[string]any{"spec": map[string]any{"versions": versions}}))
	must(t, c.Wait(ctx, patience, "the CRD with the status", func(ctx context.Context) error {
		crd, err := get(ctx, c, schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "", plural+".platform.example.org")
		if err != nil {
			return err
		}
		list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		first, _ := list[0].(map[string]any)
		if _, ok, _ := unstructured.NestedMap(first, "schema", "openAPIV3Schema", "properties", "status", "properties", "address"); !ok {
			return errors.New("it has no address")
		}

		return nil
	}))
}

// gate adds a gate to a Composition, whose network writes its address to the XR's status.
func (p *replayRun) gate(t *testing.T, platform drill.Platform, gate map[string]any) {
	t.Helper()
	ctx := t.Context()
	name := "environments-" + platform.Namespace
	u, err := get(ctx, p.source, schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"}, "", name)
	must(t, err)
	steps, _, err := unstructured.NestedSlice(u.Object, "spec", "pipeline")
	must(t, err)
	first, _ := steps[0].(map[string]any)
	resources, _, err := unstructured.NestedSlice(first, "input", "resources")
	must(t, err)
	network, _ := resources[0].(map[string]any)
	patches, _ := network["patches"].([]any)
	network["patches"] = append(patches, map[string]any{
		"type": "ToCompositeFieldPath", "fromFieldPath": "metadata.annotations[crossplane.io/external-name]", "toFieldPath": "status.address",
	})
	must(t, unstructured.SetNestedSlice(first, resources, "input", "resources"))
	steps = append(steps, map[string]any{
		"step": "gate", "functionRef": map[string]any{"name": "function-gate"},
		"input": map[string]any{"apiVersion": "gate.fn.example.org/v1", "kind": "Gates", "gates": []any{gate}},
	})
	must(t, drill.Patch(ctx, p.source, u, map[string]any{"spec": map[string]any{"pipeline": steps}}))
	must(t, p.source.Wait(ctx, patience, "the revision with the gate", func(ctx context.Context) error {
		all, err := list(ctx, p.source, schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}, "",
			"crossplane.io/composition-name="+name)
		if err == nil && len(all) != 2 {
			err = fmt.Errorf("there are %d", len(all))
		}

		return err
	}))
}
