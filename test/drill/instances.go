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
	objects := []*unstructured.Unstructured{namespaceOf(p.Namespace)}
	for i := range n {
		objects = append(objects, p.Manifest(i))
	}

	return c.ApplyObjects(ctx, objects...)
}

func namespaceOf(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
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
	objects, err := p.Objects(ctx, c)
	if err != nil {
		return err
	}
	count := map[string]int{}
	var unready []error
	for _, u := range objects {
		count[u.GetKind()]++
		for _, condition := range conditions(&u) {
			if !isPausedByUser(&u) {
				unready = append(unready, stack.HasCondition(&u, condition, "True"))
			}
		}
	}
	for _, kind := range []string{p.instance().Kind, p.composite().Kind} {
		if count[kind] != n {
			return fmt.Errorf("there are %d objects of the kind %s", count[kind], kind)
		}
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
	return p.listOwn(ctx, c, p.managed()...)
}

// listOwn lists the namespace's objects of some kinds. The cluster-scoped ones have names that begin
// with an instance's, and a label with its namespace.
func (p Platform) listOwn(ctx context.Context, c *stack.Cluster, kinds ...schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, kind := range kinds {
		objects, err := list(ctx, c, kind, p.Namespace, "")
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
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

// owners returns the kinds of the claims and XRs.
func (p Platform) owners() []schema.GroupVersionKind {
	if p.v1() {
		return []schema.GroupVersionKind{p.composite(), p.instance()}
	}

	return []schema.GroupVersionKind{p.composite()}
}

// Objects returns the namespace's claims, XRs, MRs and connection secrets.
func (p Platform) Objects(ctx context.Context, c *stack.Cluster) ([]unstructured.Unstructured, error) {
	all, err := p.listOwn(ctx, c, append(p.owners(), p.managed()...)...)
	if err != nil {
		return nil, err
	}
	secrets, err := list(ctx, c, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, p.Namespace, "")

	return append(all, slices.DeleteFunc(secrets, func(u unstructured.Unstructured) bool {
		return u.Object["type"] != "connection.crossplane.io/v1alpha1"
	})...), err
}

// Wishes returns the desired state of the claims and XRs, as users and Crossplane set it: their
// spec, labels and annotations, without Velero's labels, by kind and name.
func (p Platform) Wishes(ctx context.Context, c *stack.Cluster) (map[string]any, error) {
	objects, err := p.listOwn(ctx, c, p.owners()...)
	if err != nil {
		return nil, err
	}
	wishes := map[string]any{}
	for _, u := range objects {
		annotations := u.GetAnnotations()
		delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		wishes[u.GetKind()+"/"+u.GetName()] = map[string]any{"spec": u.Object["spec"], "labels": withoutVelero(u.GetLabels()), "annotations": annotations}
	}

	return wishes, nil
}

// Managers returns the Managers of the claims, XRs, MRs and connection secrets, by kind and name.
func (p Platform) Managers(ctx context.Context, c *stack.Cluster) (map[string]Managers, error) {
	objects, err := p.Objects(ctx, c)
	if err != nil {
		return nil, err
	}
	managers := map[string]Managers{}
	for _, u := range objects {
		managers[u.GetKind()+"/"+u.GetName()] = ManagersOf(&u)
	}

	return managers, nil
}

// withoutVelero removes the labels with the backup and the restore of an object.
func withoutVelero(labels map[string]string) map[string]string {
	maps.DeleteFunc(labels, func(key, _ string) bool { return strings.HasPrefix(key, "velero.io/") })

	return labels
}

// DeadOwners returns the names of the objects whose owner references or managedFields have an owner
// that does not exist, and of the connection secrets without an owner.
func (p Platform) DeadOwners(ctx context.Context, c *stack.Cluster) ([]string, error) {
	objects, err := p.Objects(ctx, c)
	if err != nil {
		return nil, err
	}
	alive := map[types.UID]bool{}
	for _, u := range objects {
		alive[u.GetUID()] = true
	}
	var dead []string
	for _, u := range objects {
		name := u.GetKind() + "/" + u.GetName()
		for _, ref := range u.GetOwnerReferences() {
			if !alive[ref.UID] {
				dead = append(dead, fmt.Sprintf("%s is owned by %s %s (UID %s)", name, ref.Kind, ref.Name, ref.UID))
			}
		}
		if uid := ManagersOf(&u).deadOwner(); uid != "" {
			dead = append(dead, fmt.Sprintf("the managedFields of %s have the owner UID %s", name, uid))
		}
		if u.GetKind() == "Secret" && metav1.GetControllerOf(&u) == nil {
			dead = append(dead, name+" has no controller")
		}
	}

	return dead, nil
}

// A Print identifies a state of an object. It is the same if only the same status is written again.
type Print struct {
	UID        types.UID
	Generation int64
	Labels     map[string]string
	Annotation map[string]string
	Owners     []metav1.OwnerReference
	Spec       any
}

// Prints returns a Print for each of the namespace's objects, by kind and name.
func (p Platform) Prints(ctx context.Context, c *stack.Cluster) (map[string]Print, error) {
	objects, err := p.Objects(ctx, c)
	if err != nil {
		return nil, err
	}
	prints := map[string]Print{}
	for _, u := range objects {
		prints[u.GetKind()+"/"+u.GetName()] = Print{
			UID: u.GetUID(), Generation: u.GetGeneration(), Labels: withoutVelero(u.GetLabels()), Annotation: u.GetAnnotations(),
			Owners: u.GetOwnerReferences(), Spec: u.Object["spec"],
		}
	}

	return prints, nil
}

// Watch collects the changes of the namespace's XRs, claims and MRs from now on, until the context
// is done.
func (p Platform) Watch(ctx context.Context, c *stack.Cluster) (*History, error) {
	h := &History{}
	for _, kind := range append(p.owners(), p.managed()...) {
		r, err := c.Resource(ctx, kind, p.Namespace)
		if err != nil {
			return nil, err
		}
		w, err := r.Watch(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, fmt.Errorf("cannot watch %s: %w", kind.Kind, err)
		}
		go h.collect(w, p.prefix()+"-")
	}

	return h, nil
}
