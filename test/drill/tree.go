package drill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

const (
	compositeLabel      = "crossplane.io/composite"
	claimNamespaceLabel = "crossplane.io/claim-namespace"
)

// An ID names an object.
type ID struct {
	Group, Kind, Namespace, Name string
}

// String returns the kind with its group, and the name.
func (id ID) String() string {
	return strings.TrimSuffix(id.Kind+"."+id.Group, ".") + " " + strings.TrimPrefix(id.Namespace+"/"+id.Name, "/")
}

func idOf(u *unstructured.Unstructured) ID {
	return ID{Group: u.GroupVersionKind().Group, Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// Name returns the name of an object in a Picture.
func Name(u *unstructured.Unstructured) string { return idOf(u).String() }

// A ref names an object that another object references. A cluster-scoped kind ignores the
// namespace.
type ref struct {
	kind            schema.GroupVersionKind
	namespace, name string
}

// sceneObjects are the scene's objects at one time.
type sceneObjects struct {
	objects   map[ID]*unstructured.Unstructured
	missing   []ref
	revisions []unstructured.Unstructured
}

// A walk collects the scene's objects. It lists each kind once.
type walk struct {
	scene   Scene
	cluster *stack.Cluster
	lists   map[ref][]unstructured.Unstructured
	sceneObjects
}

// objects returns the objects that users create, all objects that they reference directly or
// indirectly, and the other objects of the same kinds that are in the scene's namespaces or whose
// labels name the scene.
func (s Scene) objects(ctx context.Context, c *stack.Cluster) (*sceneObjects, error) {
	instances, err := s.instances()
	if err != nil {
		return nil, err
	}
	w := &walk{scene: s, cluster: c, lists: map[ref][]unstructured.Unstructured{}, sceneObjects: sceneObjects{objects: map[ID]*unstructured.Unstructured{}}}
	for _, u := range instances {
		if err := w.visit(ctx, ref{u.GroupVersionKind(), u.GetNamespace(), u.GetName()}); err != nil {
			return nil, err
		}
	}

	if err := w.addUnreferenced(ctx); err != nil {
		return nil, err
	}
	w.revisions, err = list(ctx, c, revisionKind, "", "")

	return &w.sceneObjects, err
}

func (w *walk) visit(ctx context.Context, r ref) error {
	u, err := w.find(ctx, r)
	if err != nil {
		return err
	}
	if u == nil {
		w.missing = append(w.missing, r)

		return nil
	}
	if w.objects[idOf(u)] != nil {
		return nil
	}
	w.objects[idOf(u)] = u
	for _, child := range children(u) {
		if err := w.visit(ctx, child); err != nil {
			return err
		}
	}

	return nil
}

func (w *walk) find(ctx context.Context, r ref) (*unstructured.Unstructured, error) {
	all, err := w.list(ctx, r.kind, r.namespace)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(u unstructured.Unstructured) bool { return u.GetName() == r.name })
	if i < 0 {
		return nil, nil //nolint:nilnil // That there is none is no error.
	}

	return &all[i], nil
}

func (w *walk) list(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	key := ref{kind: kind, namespace: namespace}
	all, ok := w.lists[key]
	if ok {
		return all, nil
	}
	all, err := list(ctx, w.cluster, kind, namespace, "")
	w.lists[key] = all

	return all, err
}

// children returns the objects that an object references as its own: a claim its XR, an XR its
// composed resources, and each its connection secret.
func children(u *unstructured.Unstructured) []ref {
	var all []ref
	if m, ok, _ := unstructured.NestedMap(u.Object, "spec", "resourceRef"); ok {
		all = append(all, refFrom(m, ""))
	}
	for _, path := range [][]string{{"spec", "resourceRefs"}, {"spec", "crossplane", "resourceRefs"}} {
		refs, _, _ := unstructured.NestedSlice(u.Object, path...)
		for _, entry := range refs {
			m, _ := entry.(map[string]any)
			all = append(all, refFrom(m, u.GetNamespace()))
		}
	}
	if m, ok, _ := unstructured.NestedMap(u.Object, "spec", "writeConnectionSecretToRef"); ok {
		r := refFrom(m, u.GetNamespace())
		r.kind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
		all = append(all, r)
	}

	return all
}

func refFrom(m map[string]any, namespace string) ref {
	text := func(key string) string {
		s, _ := m[key].(string)

		return s
	}
	if own := text("namespace"); own != "" {
		namespace = own
	}

	return ref{kind: schema.FromAPIVersionAndKind(text("apiVersion"), text("kind")), namespace: namespace, name: text("name")}
}

// addUnreferenced adds the objects of the found kinds that belong to the scene and that no object
// references. Only damage leaves such objects.
func (w *walk) addUnreferenced(ctx context.Context) error {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, u := range w.objects {
		kinds[u.GroupVersionKind()] = true
	}
	for _, kind := range w.scene.Kinds {
		kinds[kind] = true
	}
	for kind := range kinds {
		for _, namespace := range w.scene.namespaces() {
			all, err := w.list(ctx, kind, namespace)
			if err != nil {
				return err
			}
			for _, u := range all {
				if w.scene.has(&u) {
					w.objects[idOf(&u)] = &u
				}
			}
		}
	}

	return nil
}

func (s Scene) has(u *unstructured.Unstructured) bool {
	if u.GetNamespace() != "" {
		theirs := slices.ContainsFunc(u.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return strings.HasPrefix(o.Name, others) })

		return u.GetName() != "kube-root-ca.crt" && (s.Others || !theirs) // The control plane creates it in every namespace.
	}

	if namespace := u.GetLabels()[claimNamespaceLabel]; namespace != "" {
		return slices.Contains(s.namespaces(), namespace)
	}

	return strings.HasPrefix(u.GetName(), s.prefix())
}

// AwaitReady waits until the scene is complete: all referenced objects exist, no hold is left, XRs,
// claims, MRs and Usages are Synced and Ready, and every XR runs on the right revision.
func (s Scene) AwaitReady(ctx context.Context, c *stack.Cluster) error {
	return c.Wait(ctx, stepTimeout, "scene "+s.Name+" to be Ready", func(ctx context.Context) error {
		all, err := s.objects(ctx, c)
		if err != nil {
			return err
		}
		var unready []error
		for _, r := range all.missing {
			unready = append(unready, fmt.Errorf("%s %s/%s is not there", r.kind.Kind, r.namespace, r.name))
		}
		for _, u := range all.objects {
			unready = append(unready, all.ready(u))
		}
		if s.Size > 0 && len(all.objects) != s.Size {
			unready = append(unready, fmt.Errorf("it has %d objects, not %d", len(all.objects), s.Size))
		}

		return summarize(unready)
	})
}

func (f *sceneObjects) ready(u *unstructured.Unstructured) error {
	var errs []error
	if Held(u) {
		errs = append(errs, fmt.Errorf("%s is held: %v", idOf(u), u.GetAnnotations()))
	}
	if isPausedByUser(u) {
		return errors.Join(errs...)
	}
	for _, condition := range conditions(u) {
		errs = append(errs, stack.HasCondition(u, condition, "True"))
	}
	if isComposite(u) && !isManual(u) {
		composition, _ := crossplaneField(u, "compositionRef", "name").(string)
		selector, _ := crossplaneField(u, "compositionRevisionSelector", "matchLabels").(map[string]any)
		want := newest(f.revisions, composition, selector)
		if got := crossplaneField(u, "compositionRevisionRef", "name"); got != want.GetName() {
			errs = append(errs, fmt.Errorf("%s runs on revision %v, not the newest, %s", idOf(u), got, want.GetName()))
		}
	}

	return errors.Join(errs...)
}

// isPausedByUser reports whether a user has paused an object. It is neither Synced nor changed.
func isPausedByUser(u *unstructured.Unstructured) bool {
	return u.GetAnnotations()["crossplane.io/paused"] == "true" && !Held(u)
}

// conditions returns the condition types that are True on a healthy object.
func conditions(u *unstructured.Unstructured) []string {
	switch group := u.GroupVersionKind().Group; {
	case strings.HasSuffix(u.GetKind(), "Usage"):
		return []string{"Ready"}
	case strings.HasSuffix(group, ".example.org"), u.GetKind() == "Object":
		return []string{"Synced", "Ready"}
	default:
		return nil
	}
}

// isComposite reports whether an object is an XR, by its resource references. An XR without any
// does not matter here.
func isComposite(u *unstructured.Unstructured) bool {
	refs, _ := crossplaneField(u, "resourceRefs").([]any)

	return len(refs) > 0
}

func isManual(u *unstructured.Unstructured) bool {
	return crossplaneField(u, "compositionUpdatePolicy") == "Manual"
}

// crossplaneField returns a field that belongs to Crossplane: in spec.crossplane of the modern
// schema, else in spec.
func crossplaneField(u *unstructured.Unstructured, path ...string) any {
	for _, at := range [][]string{{"spec", "crossplane"}, {"spec"}} {
		if v, ok, err := unstructured.NestedFieldNoCopy(u.Object, append(at, path...)...); ok && err == nil {
			return v
		}
	}

	return nil
}

// AddDetails adds a key to the connection secret of each of the scene's databases that nothing
// publishes again. Many providers learn a password or a private key when they create a resource,
// and never after.
func (s Scene) AddDetails(ctx context.Context, c *stack.Cluster) error {
	all, err := s.objects(ctx, c)
	if err != nil {
		return err
	}
	secret := schema.GroupKind{Kind: "Secret"}
	for _, u := range all.objects {
		if owner := metav1.GetControllerOf(u); u.GroupVersionKind().GroupKind() != secret || owner == nil || owner.Kind != "Database" {
			continue
		}
		if err := Patch(ctx, c, u, map[string]any{"data": map[string]any{"root": "b25seSBhdCBjcmVhdGlvbg=="}}); err != nil {
			return err
		}
	}

	return nil
}

// Unprotected returns the names of the scene's objects that are in use according to their Usages
// and could be deleted all the same. Crossplane records the attempt on the Usage; Unprotected
// removes that record.
func (s Scene) Unprotected(ctx context.Context, c *stack.Cluster) ([]string, error) {
	all, err := s.objects(ctx, c)
	if err != nil {
		return nil, err
	}
	var unprotected []string
	for id, u := range all.objects {
		if u.GetLabels()["crossplane.io/in-use"] != "true" {
			continue
		}
		r, err := c.Resource(ctx, u.GroupVersionKind(), u.GetNamespace())
		if err != nil {
			return nil, err
		}
		err = r.Delete(ctx, u.GetName(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "in-use") {
			unprotected = append(unprotected, fmt.Sprintf("%s: the answer to a delete was %v", id, err))
		}
		attempt := map[string]any{"usage.crossplane.io/deletion-attempt-with-policy": nil}
		if err := Patch(ctx, c, u, map[string]any{"metadata": map[string]any{"annotations": attempt}}); err != nil {
			return nil, err
		}
	}

	return unprotected, nil
}
