package drill

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A Picture describes a scene's objects without the fields that differ in every cluster: a restored
// scene has the same Picture as the original.
type Picture map[string]Likeness

// A Likeness has the parts of an object that a restore must bring back.
type Likeness struct {
	Labels, Annotations map[string]string
	Finalizers          []string
	// GenerateName is the object's metadata.generateName.
	GenerateName string
	// Owners have the kind and name of each owner, and whether it is the controller and whether it
	// is live with this UID.
	Owners []string
	// Fields are all fields beside metadata and status. For a Secret they have the digests of its
	// values.
	Fields any
	// Status has the status without times and generations; nil if the scene does not compare it.
	Status any
	// Dead is the owner UID in its managedFields that none of its owners has; "" if there is none.
	Dead string
	// Managers are the managers of its fields.
	Managers Managers
}

// Absent are the fields of an object that is named and does not exist.
const Absent = "named, but not there"

// Picture returns the current Picture of the scene.
func (s Scene) Picture(ctx context.Context, c *stack.Cluster) (Picture, error) {
	all, err := s.objects(ctx, c)
	if err != nil {
		return nil, err
	}
	p := Picture{}
	for _, r := range all.missing {
		p[fmt.Sprintf("%s %s/%s", r.kind.Kind, r.namespace, r.name)] = Likeness{Fields: Absent}
	}
	for id, u := range all.objects {
		l, err := s.likeness(ctx, c, u)
		if err != nil {
			return nil, err
		}
		p[id.String()] = l
	}

	return p, nil
}

// Live returns the current objects of the scene, by their names in a Picture.
func (s Scene) Live(ctx context.Context, c *stack.Cluster) (map[string]*unstructured.Unstructured, error) {
	all, err := s.objects(ctx, c)
	if err != nil {
		return nil, err
	}
	live := map[string]*unstructured.Unstructured{}
	for id, u := range all.objects {
		live[id.String()] = u
	}

	return live, nil
}

// Only returns the objects whose names contain the text.
func (p Picture) Only(text string) Picture {
	part := Picture{}
	for name, l := range p {
		if strings.Contains(name, text) {
			part[name] = l
		}
	}

	return part
}

func (s Scene) likeness(ctx context.Context, c *stack.Cluster, u *unstructured.Unstructured) (Likeness, error) {
	owners, err := owners(ctx, c, u)
	if err != nil {
		return Likeness{}, err
	}
	l := Likeness{
		Labels: withoutVelero(u.GetLabels()), Annotations: u.GetAnnotations(), Finalizers: u.GetFinalizers(), Owners: owners,
		GenerateName: u.GetGenerateName(), Managers: ManagersOf(u),
	}
	l.Dead = l.Managers.deadOwner()
	fields := runtime.DeepCopyJSON(u.Object)
	for _, key := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(fields, key)
	}
	if s.Drift && !isManual(u) {
		for _, path := range [][]string{{"spec", "crossplane"}, {"spec"}} {
			unstructured.RemoveNestedField(fields, append(path, "compositionRevisionRef")...)
		}
	}
	l.Fields = fields
	if s.Status {
		l.Status = steady(runtime.DeepCopyJSONValue(u.Object["status"]))
	}
	if u.GetKind() == "Secret" {
		digest(fields)
	}

	return l, nil
}

// steady removes from a status what says when and of which generation it is.
func steady(value any) any {
	switch v := value.(type) {
	case map[string]any:
		// The last ones are of an object that another one observes, or of a time only.
		for _, key := range []string{
			"lastTransitionTime", "lastProbeTime", "lastUpdateTime", "observedGeneration", "connectionDetails",
			"creationTimestamp", "resourceVersion", "uid", "managedFields",
		} {
			delete(v, key)
		}
		if labels, ok := v["labels"].(map[string]any); ok {
			maps.DeleteFunc(labels, func(key string, _ any) bool { return strings.HasPrefix(key, "velero.io/") })
			if len(labels) == 0 {
				delete(v, "labels")
			}
		}
		for key, inner := range v {
			v[key] = steady(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = steady(inner)
		}
		if len(v) > 0 {
			if m, ok := v[0].(map[string]any); ok && m["type"] != nil && m["status"] != nil {
				slices.SortFunc(v, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
	}

	return value
}

// digest replaces the values of a Secret by digests, so that a difference shows the key and not the
// secret.
func digest(secret map[string]any) {
	data, _ := secret["data"].(map[string]any)
	for key, value := range data {
		sum := sha256.Sum256([]byte(fmt.Sprint(value)))
		data[key] = hex.EncodeToString(sum[:4])
	}
}

// owners describes each owner and whether it is live.
func owners(ctx context.Context, c *stack.Cluster, u *unstructured.Unstructured) ([]string, error) {
	var texts []string
	for _, o := range u.GetOwnerReferences() {
		live, err := get(ctx, c, schema.FromAPIVersionAndKind(o.APIVersion, o.Kind), u.GetNamespace(), o.Name)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		state, role := "dead", "owner"
		if err == nil && live.GetUID() == o.UID {
			state = "alive"
		}
		if controller(u) == o.UID {
			role = "controller"
		}
		texts = append(texts, fmt.Sprintf("%s %s, %s, %s", o.Kind, o.Name, role, state))
	}
	slices.Sort(texts)

	return texts, nil
}

// Revisions returns the revisions of a scene's Compositions by name, with their numbers and owners.
func (s Scene) Revisions(ctx context.Context, c *stack.Cluster) (Picture, error) {
	all, err := list(ctx, c, revisionKind, "", "")
	if err != nil {
		return nil, err
	}
	p := Picture{}
	for _, u := range all {
		if name := u.GetLabels()["crossplane.io/composition-name"]; name != s.Name && !strings.HasPrefix(name, s.Name+"-") {
			continue
		}
		l, err := s.likeness(ctx, c, &u)
		if err != nil {
			return nil, err
		}
		p[u.GetName()] = l
	}

	return p, nil
}
