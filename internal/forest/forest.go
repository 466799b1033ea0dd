package forest

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An Object of a forest is as the API server of the source cluster has it, with the truth about it.
type Object struct {
	*unstructured.Unstructured

	Kind Kind
	Role Role
	// Own is the object as its person had it: itself, unless it was backed up while an earlier
	// restore held it.
	Own *unstructured.Unstructured
	// Composer is the XR that composes it, whoever else says so; nil if none does.
	Composer *Object
	// Controlled says that its composer is also its controller, which a restore by Velero alone may
	// have undone.
	Controlled bool
	// Brings is what a backup must take along with it.
	Brings []*Object
	// Publishes is the one of these that it publishes its connection details in.
	Publishes *Object
	// Astray are its references that a backup must not follow: to what does not exist, or is
	// somebody else's.
	Astray []xp.Ref
	// parent is the XR in whose tree it has grown, whoever composes it.
	parent *Object
	// Shape is what is odd about it, for a person.
	Shape string
}

// A Forest is a source cluster.
type Forest struct {
	Seed       uint64
	Namespaces []string
	Objects    []*Object

	byID   map[xp.ID]*Object
	byItem map[xp.Item]*Object
}

// Get returns an object of the source cluster; nil if there is none.
func (f *Forest) Get(id xp.ID) *Object { return f.byID[id] }

// A Soil says what can grow.
type Soil struct {
	// Servable leaves out what an API server would not store.
	Servable bool
	// Largest is the greatest number of objects.
	Largest int
}

// Grow grows the forest of a seed.
func Grow(seed uint64, soil Soil) *Forest {
	g := &grower{
		Forest: &Forest{Seed: seed, Namespaces: []string{"team-a", "team-b", "team-c", "infra"}, byID: map[xp.ID]*Object{}, byItem: map[xp.Item]*Object{}},
		Rand:   rand.New(rand.NewPCG(seed, 6)),
		soil:   soil,
	}
	switch n := g.IntN(100); {
	case n < 60:
		g.left = 4 + g.IntN(12)
	case n < 90:
		g.left = 10 + g.IntN(25)
	case n < 98:
		g.left = 30 + g.IntN(50)
	default:
		g.left = 80 + g.IntN(121)
	}
	g.left = min(g.left, soil.Largest)
	g.platform()
	for g.left > 0 {
		g.grow()
	}
	g.entangle()

	return g.Forest
}

// A grower grows one forest.
type grower struct {
	*Forest
	*rand.Rand

	soil Soil
	// left is how many objects there may still be.
	left   int
	count  int
	xrds   map[Kind]*Object
	onto   map[Kind][]composing
	roots  []*Object
	config map[string]*Object
}

// composing is a Composition with a revision of it.
type composing struct{ composition, revision *Object }

func (g *grower) chance(percent int) bool { return g.IntN(100) < percent }

func one[T any](g *grower, of ...T) T { return of[g.IntN(len(of))] }

// name returns one that no other object of the kind has, though objects of other kinds and
// namespaces may.
func (g *grower) name(k Kind, ns string) string {
	names := []string{"a", "orders", "x-1", "a.b-c", "0", "orders.example.org", "team-a", "long-" + fmt.Sprintf("%050d", 7), "n.n.n"}
	if !g.soil.Servable {
		names = append(names, "with:colon", "UPPER", "ümlaut", `quote"d`, "a b")
	}
	name := one(g, names...)
	for g.byID[xp.ID{Group: k.Group, Kind: k.Kind, Namespace: ns, Name: name}] != nil {
		name = fmt.Sprintf("%s-%d", one(g, names...), g.IntN(1000))
	}

	return name
}

// add has an object exist. A namespace is left out for what is cluster-scoped.
func (g *grower) add(k Kind, role Role, ns, name string) *Object {
	if !k.Namespaced {
		ns = ""
	}
	if name == "" {
		name = g.name(k, ns)
	}
	metadata := map[string]any{
		"name": name, "uid": fmt.Sprintf("%08d-0000-4000-8000-%012d", g.Seed%1e8, g.count), "resourceVersion": strconv.Itoa(g.count + 1),
		"generation": int64(1 + g.IntN(9)), "creationTimestamp": "2026-01-02T03:04:05Z",
	}
	if ns != "" {
		metadata["namespace"] = ns
	}
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
	u.SetGroupVersionKind(k.GroupVersionKind)
	o := &Object{Unstructured: u, Own: u, Kind: k, Role: role}
	g.count++
	g.left--
	g.Objects = append(g.Objects, o)
	g.byID[xp.RefTo(u).ID()], g.byItem[xp.Item{GroupResource: k.Resource(), Namespace: ns, Name: name}] = o, o

	return o
}

// own writes an owner reference, and the field of it in managedFields.
func own(o *Object, owner metav1.OwnerReference) {
	o.SetOwnerReferences(append(o.GetOwnerReferences(), owner))
	fields := map[string]any{".": map[string]any{}}
	for _, r := range o.GetOwnerReferences() {
		fields[`k:{"uid":"`+string(r.UID)+`"}`] = map[string]any{}
	}
	labels := map[string]any{"f:crossplane.io/composite": map[string]any{}}
	entry := map[string]any{
		"manager": "crossplane", "operation": "Apply", "apiVersion": o.GetAPIVersion(), "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1",
		"fieldsV1": map[string]any{"f:metadata": map[string]any{"f:ownerReferences": fields, "f:labels": labels}},
	}
	set(o, []any{entry}, "metadata", "managedFields")
}

func ownerOf(u *unstructured.Unstructured, controller bool) metav1.OwnerReference {
	r := metav1.OwnerReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName(), UID: u.GetUID()}
	if controller {
		r.Controller, r.BlockOwnerDeletion = ptr.To(true), ptr.To(true)
	}

	return r
}

func set(o *Object, value any, path ...string) {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(fmt.Sprintf("cannot grow %s: %v", xp.String(o.Unstructured), err)) // The test is wrong.
	}
}

func text(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)

	return s
}

func label(o *Object, key, value string) {
	l := o.GetLabels()
	if l == nil {
		l = map[string]string{}
	}
	l[key] = value
	o.SetLabels(l)
}

func annotate(o *Object, key, value string) { xp.Annotate(o.Unstructured, key, value) }

// refer returns a reference, with a namespace if there is one and it is wanted.
func refer(r xp.Ref, namespaced bool) map[string]any {
	m := map[string]any{"apiVersion": r.APIVersion, "kind": r.Kind, "name": r.Name}
	if namespaced && r.Namespace != "" {
		m["namespace"] = r.Namespace
	}

	return m
}

// nobody names an object that does not exist.
func (g *grower) nobody(k Kind, ns string) xp.Ref {
	if !k.Namespaced {
		ns = ""
	}

	return xp.Ref{APIVersion: k.GroupVersion().String(), Kind: k.Kind, Namespace: ns, Name: fmt.Sprintf("missing-%d", g.IntN(1000))}
}

func (g *grower) stranger() types.UID {
	return types.UID(fmt.Sprintf("%08d-dead-4000-8000-%012d", g.Seed%1e8, g.IntN(1000)))
}
