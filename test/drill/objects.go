package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// kinds returns the kinds of a namespace's instances and of all that belongs to them.
func (p Platform) kinds() []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{p.composite()}
	if p.v1() {
		kinds = append(kinds, p.instance())
	}

	return append(kinds, p.managed()...)
}

// Objects returns the namespace's claims, XRs, MRs and connection secrets.
func (p Platform) Objects(ctx context.Context, c *stack.Cluster) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, kind := range p.kinds() {
		objects, err := p.listOwn(ctx, c, kind)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	secrets, err := list(ctx, c, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, p.Namespace, "")
	if err != nil {
		return nil, err
	}

	return append(all, slices.DeleteFunc(secrets, func(u unstructured.Unstructured) bool {
		return u.Object["type"] != "connection.crossplane.io/v1alpha1"
	})...), nil
}

// Wishes returns the desired state of the claims and XRs, as users and Crossplane set it: their
// spec, labels and annotations, without Velero's labels, by kind and name.
func (p Platform) Wishes(ctx context.Context, c *stack.Cluster) (map[string]any, error) {
	wishes := map[string]any{}
	kinds := p.kinds()[:1]
	if p.v1() {
		kinds = p.kinds()[:2]
	}
	for _, kind := range kinds {
		objects, err := p.listOwn(ctx, c, kind)
		if err != nil {
			return nil, err
		}
		for _, u := range objects {
			labels := withoutVelero(u.GetLabels())
			annotations := u.GetAnnotations()
			delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
			wishes[u.GetKind()+"/"+u.GetName()] = map[string]any{"spec": u.Object["spec"], "labels": labels, "annotations": annotations}
		}
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
		for _, entry := range u.GetManagedFields() {
			if uid := deadField(entry, alive); uid != "" {
				dead = append(dead, fmt.Sprintf("the managedFields of %s have the owner UID %s", name, uid))
			}
		}
		if u.GetKind() == "Secret" && metav1.GetControllerOf(&u) == nil {
			dead = append(dead, name+" has no controller")
		}
	}

	return dead, nil
}

func deadField(entry metav1.ManagedFieldsEntry, alive map[types.UID]bool) types.UID {
	if entry.FieldsV1 == nil {
		return ""
	}
	var fields struct {
		Metadata struct {
			Owners map[string]any `json:"f:ownerReferences"`
		} `json:"f:metadata"`
	}
	if err := json.Unmarshal(entry.FieldsV1.Raw, &fields); err != nil {
		return types.UID("unreadable: " + err.Error())
	}
	for key := range fields.Metadata.Owners {
		var id struct {
			UID types.UID `json:"uid"`
		}
		k, ok := strings.CutPrefix(key, "k:")
		if ok && json.Unmarshal([]byte(k), &id) == nil && !alive[id.UID] {
			return id.UID
		}
	}

	return ""
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
	for _, kind := range p.kinds() {
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
