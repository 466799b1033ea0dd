package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// Make creates the namespace and n instances in it. They take a while to be Ready.
func (p Platform) Make(ctx context.Context, c *stack.Cluster, n int) error {
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": p.Namespace},
	}}
	if err := c.ApplyObjects(ctx, namespace); err != nil {
		return err
	}
	for i := range n {
		if err := c.ApplyObjects(ctx, p.Manifest(i)); err != nil {
			return err
		}
	}

	return nil
}

// Name of the i-th instance.
func (p Platform) Name(i int) string { return fmt.Sprintf("%s-%02d", p.prefix(), i) }

// Manifest returns the manifest that a user applies for the i-th instance.
func (p Platform) Manifest(i int) *unstructured.Unstructured {
	spec := map[string]any{"region": "eu-central", "cidr": fmt.Sprintf("10.%d.0.0/16", i)}
	settings := map[string]any{"compositionRef": map[string]any{"name": p.compositionName()}}
	if p.UpdatePolicy != "" {
		settings["compositionUpdatePolicy"] = p.UpdatePolicy
	}
	if p.v1() {
		maps.Copy(spec, settings)
		spec["writeConnectionSecretToRef"] = map[string]any{"name": p.Name(i) + "-connection"}
	} else {
		spec["crossplane"] = settings
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(p.instance())
	u.SetNamespace(p.Namespace)
	u.SetName(p.Name(i))

	return u
}

// AwaitReady waits until there are n instances, and they, their XRs and the composed resources are
// Ready and Synced. A resource that a user has paused is neither.
func (p Platform) AwaitReady(ctx context.Context, c *stack.Cluster, n int) error {
	return c.Wait(ctx, stepTimeout, fmt.Sprintf("%d environments in %s to be Ready", n, p.Namespace), func(ctx context.Context) error {
		return p.ready(ctx, c, n)
	})
}

// AwaitMade is AwaitReady in a cluster where nothing was restored. Meanwhile it deletes resources
// that are composed twice, and returns them: see Scene.Prune.
func (p Platform) AwaitMade(ctx context.Context, c *stack.Cluster, n int) ([]string, error) {
	var pruned []string
	err := c.Wait(ctx, stepTimeout, fmt.Sprintf("%d environments in %s to be Ready", n, p.Namespace), func(ctx context.Context) error {
		strays, err := p.strays(ctx, c)
		if err != nil {
			return err
		}
		names, err := remove(ctx, c, strays)
		pruned = append(pruned, names...)
		if err != nil {
			return err
		}
		if len(names) > 0 {
			return fmt.Errorf("%s are not gone", strings.Join(names, ", "))
		}

		return p.ready(ctx, c, n)
	})

	slices.Sort(pruned)

	return slices.Compact(pruned), err
}

// ready returns why the instances are not ready.
func (p Platform) ready(ctx context.Context, c *stack.Cluster, n int) error {
	instances, err := p.Instances(ctx, c)
	if err != nil {
		return err
	}
	if len(instances) != n {
		return fmt.Errorf("there are %d", len(instances))
	}
	xrs, err := p.Composites(ctx, c)
	if err != nil {
		return err
	}
	if len(xrs) != n {
		return fmt.Errorf("there are %d XRs", len(xrs))
	}
	mrs, err := p.Managed(ctx, c)
	if err != nil {
		return err
	}
	var unready []error
	for _, u := range slices.Concat(instances, xrs, mrs) {
		if isPausedByUser(&u) {
			continue
		}
		unready = append(unready, stack.HasCondition(&u, "Synced", "True"), stack.HasCondition(&u, "Ready", "True"))
	}

	return summarize(unready)
}

// summarize returns one error with the number of errors and the first few.
func summarize(errs []error) error {
	const few = 3
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) <= few {
		return errors.Join(errs...)
	}

	return fmt.Errorf("%d conditions are not met, such as: %w", len(errs), errors.Join(errs[:few]...))
}

// Instances returns the objects that users create: claims on v1, XRs on v2.
func (p Platform) Instances(ctx context.Context, c *stack.Cluster) ([]unstructured.Unstructured, error) {
	return list(ctx, c, p.instance(), p.Namespace, "")
}

// Composites returns the XRs of the namespace.
func (p Platform) Composites(ctx context.Context, c *stack.Cluster) ([]unstructured.Unstructured, error) {
	return p.listOwn(ctx, c, p.composite())
}

// Managed returns the MRs of the namespace.
func (p Platform) Managed(ctx context.Context, c *stack.Cluster) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, kind := range p.managed() {
		mrs, err := p.listOwn(ctx, c, kind)
		if err != nil {
			return nil, err
		}
		all = append(all, mrs...)
	}

	return all, nil
}

// listOwn lists the namespace's objects of a kind. The cluster-scoped ones have names that begin with
// an instance's, and a label with its namespace.
func (p Platform) listOwn(ctx context.Context, c *stack.Cluster, gvk schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	all, err := list(ctx, c, gvk, p.Namespace, "")
	if err != nil {
		return nil, err
	}

	return slices.DeleteFunc(all, func(u unstructured.Unstructured) bool {
		namespace, labelled := u.GetLabels()["crossplane.io/claim-namespace"]

		return !strings.HasPrefix(u.GetName(), p.prefix()+"-") || labelled && namespace != p.Namespace
	}), nil
}

// Patch carries out a merge patch on an object, or on a subresource of it.
func Patch(ctx context.Context, c *stack.Cluster, u *unstructured.Unstructured, patch map[string]any, subresource ...string) error {
	r, err := c.Resource(ctx, u.GroupVersionKind(), u.GetNamespace())
	if err != nil {
		return err
	}
	b, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("cannot encode the patch of %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	if _, err := r.Patch(ctx, u.GetName(), types.MergePatchType, b, metav1.PatchOptions{}, subresource...); err != nil {
		return fmt.Errorf("cannot patch %s %s: %w", u.GetKind(), u.GetName(), err)
	}

	return nil
}

// DeleteNamespace deletes the namespace and waits until it and everything that the instances
// composed is gone.
func (p Platform) DeleteNamespace(ctx context.Context, c *stack.Cluster) error {
	namespaces, err := c.Resource(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "")
	if err != nil {
		return err
	}
	if err := namespaces.Delete(ctx, p.Namespace, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("cannot delete namespace %s: %w", p.Namespace, err)
	}

	return c.Wait(ctx, stepTimeout, "namespace "+p.Namespace+" to be gone", func(ctx context.Context) error {
		mrs, err := p.Managed(ctx, c)
		if err != nil {
			return err
		}
		if len(mrs) > 0 {
			return fmt.Errorf("%d MRs are left", len(mrs))
		}
		if _, err := namespaces.Get(ctx, p.Namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %w", err)
		}

		return nil
	})
}
