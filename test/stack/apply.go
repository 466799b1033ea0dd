package stack

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

const fieldManager = "stack"

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Apply applies YAML or JSON documents and lists, server-side and in their order. It waits for
// kinds that are not served yet, and for CRDs until they are established.
func (c *client) Apply(ctx context.Context, manifests ...[]byte) error {
	for _, manifest := range manifests {
		objs, err := Parse(manifest)
		if err != nil {
			return err
		}
		if err := c.ApplyObjects(ctx, objs...); err != nil {
			return err
		}
	}

	return nil
}

// ApplyFiles applies files, and the .yaml files in directories.
func (c *client) ApplyFiles(ctx context.Context, paths ...string) error {
	var all []*unstructured.Unstructured
	for _, path := range paths {
		objs, err := read(path)
		if err != nil {
			return err
		}
		all = append(all, objs...)
	}

	return c.ApplyObjects(ctx, all...)
}

// ApplyObjects applies objects. CRDs come first, all at once.
func (c *client) ApplyObjects(ctx context.Context, objs ...*unstructured.Unstructured) error {
	var crds []func() error
	rest := make([]*unstructured.Unstructured, 0, len(objs))
	for _, obj := range objs {
		if obj.GetKind() != "CustomResourceDefinition" {
			rest = append(rest, obj)

			continue
		}
		crds = append(crds, func() error { return c.applyCRD(ctx, obj) })
	}
	if err := parallel(crds...); err != nil {
		return err
	}
	for _, obj := range rest {
		if err := c.apply(ctx, obj); err != nil {
			return err
		}
	}

	return nil
}

// ApplyStatus applies the status of an object that exists.
func (c *client) ApplyStatus(ctx context.Context, obj *unstructured.Unstructured) error {
	return c.apply(ctx, obj, "status")
}

// Resource returns a client of one kind, in a namespace if the kind has one. It waits for a kind
// that is not served yet.
func (c *client) Resource(ctx context.Context, gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	var mapping *meta.RESTMapping
	err := Wait(ctx, readyTimeout, "the resource of "+gvk.String(), func(context.Context) (err error) {
		mapping, err = c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			c.mapper.Reset()
		}

		return err
	})
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.dynamic.Resource(mapping.Resource), nil
	}
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}

	return c.dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}

func (c *client) apply(ctx context.Context, obj *unstructured.Unstructured, subresources ...string) error {
	r, err := c.Resource(ctx, obj.GroupVersionKind(), obj.GetNamespace())
	if err != nil {
		return err
	}
	if _, err := r.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}, subresources...); err != nil {
		return fmt.Errorf("cannot apply %s: %w", strings.Join(append([]string{describe(obj)}, subresources...), ", "), err)
	}

	return nil
}

func (c *client) applyCRD(ctx context.Context, obj *unstructured.Unstructured) error {
	if err := c.apply(ctx, obj); err != nil {
		return err
	}
	crds := c.dynamic.Resource(crdResource)
	err := Wait(ctx, readyTimeout, describe(obj)+" established", func(ctx context.Context) error {
		live, err := crds.Get(ctx, obj.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}

		return HasCondition(live, "Established", "True")
	})
	if err != nil {
		return err
	}

	// The API server serves the kind a little later. A program that looks for its kinds when it
	// starts then finds them all.
	group, _, _ := unstructured.NestedString(obj.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(obj.Object, "spec", "names", "kind")
	_, err = c.Resource(ctx, schema.GroupVersionKind{Group: group, Kind: kind}, "")

	return err
}

// HasCondition returns nil if an object has a condition with that status, else an error with the
// status that it has.
func HasCondition(obj *unstructured.Unstructured, kind, status string) error {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if !ok || condition["type"] != kind {
			continue
		}
		if condition["status"] == status {
			return nil
		}

		return fmt.Errorf("%s: %s is %v, not %s: %v: %v", describe(obj), kind, condition["status"], status, condition["reason"], condition["message"])
	}

	return fmt.Errorf("%s has no condition %s", describe(obj), kind)
}

// Parse returns the objects in YAML or JSON documents, lists taken apart.
func Parse(manifest []byte) ([]*unstructured.Unstructured, error) {
	var objs []*unstructured.Unstructured
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return objs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read a YAML document: %w", err)
		}
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &obj.Object); err != nil {
			return nil, fmt.Errorf("cannot parse a YAML document: %w", err)
		}
		switch {
		case len(obj.Object) == 0:
		case obj.IsList():
			err := obj.EachListItem(func(item runtime.Object) error {
				objs = append(objs, item.(*unstructured.Unstructured)) //nolint:forcetypeassert // It is what an Unstructured's items are.

				return nil
			})
			if err != nil {
				return nil, fmt.Errorf("cannot take apart a list: %w", err)
			}
		default:
			objs = append(objs, obj)
		}
	}
}

// read parses a file, or every .yaml file in a directory.
func read(path string) ([]*unstructured.Unstructured, error) {
	files := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", path, err)
		}
		slices.Sort(files)
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file, err)
		}
		objs, err := Parse(b)
		if err != nil {
			return nil, fmt.Errorf("cannot parse %s: %w", file, err)
		}
		all = append(all, objs...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cannot find an object in %s", path)
	}

	return all, nil
}

func describe(obj *unstructured.Unstructured) string {
	return strings.TrimSpace(obj.GetKind() + " " + strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/"))
}
