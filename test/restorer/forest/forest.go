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

// An Object of a forest is an object as the source cluster has it, with the truth about it.
type Object struct {
	*unstructured.Unstructured

	Kind Kind
	Role Role
	// Own is the object as its user had it. It differs from the object only if an earlier restore
	// holds that.
	Own *unstructured.Unstructured
	// Composer is the XR that composes it, nil if there is none. Labels and references of others do
	// not count.
	Composer *Object
	// Controlled is true if Composer is also its controller. A restore by Velero alone can lose
	// that.
	Controlled bool
	// Needs are the objects that a backup must include with it.
	Needs []*Object
	// Publishes is the Secret among Needs in which it publishes.
	Publishes *Object
	// Unfollowed are its references that a backup must not follow: to missing objects, or to
	// objects of others.
	Unfollowed []xp.Ref
	// parent is the XR in whose tree it was generated.
	parent *Object
	// Shape describes what is odd about it, "" if nothing is.
	Shape string
}

// A Forest is the content of a source cluster.
type Forest struct {
	Seed       uint64
	Namespaces []string
	Objects    []*Object

	byID   map[xp.ID]*Object
	byItem map[xp.Item]*Object
}

// Get returns an object of the source cluster, nil if there is none.
func (f *Forest) Get(id xp.ID) *Object { return f.byID[id] }

// Limits are limits of a forest.
type Limits struct {
	// Servable leaves out what an API server would not store.
	Servable bool
	// Largest is the maximum number of objects.
	Largest int
}

// Generate returns the forest of a seed.
func Generate(seed uint64, limits Limits) *Forest {
	g := &generator{
		Forest: &Forest{Seed: seed, Namespaces: []string{"team-a", "team-b", "team-c", "infra"}, byID: map[xp.ID]*Object{}, byItem: map[xp.Item]*Object{}},
		Rand:   rand.New(rand.NewPCG(seed, 6)),
		limits: limits,
	}
	switch n := g.IntN(100); {
	case n < 60:
		g.remaining = 4 + g.IntN(12)
	case n < 90:
		g.remaining = 10 + g.IntN(25)
	case n < 98:
		g.remaining = 30 + g.IntN(50)
	default:
		g.remaining = 80 + g.IntN(121)
	}
	g.remaining = min(g.remaining, limits.Largest)
	g.platform()
	for g.remaining > 0 {
		g.addTree()
	}
	g.addEdgeCases()

	return g.Forest
}

// A generator generates one forest.
type generator struct {
	*Forest
	*rand.Rand

	limits Limits
	// remaining is the number of objects that may still be added.
	remaining    int
	count        int
	xrds         map[Kind]*Object
	compositions map[Kind][]revised
	roots        []*Object
	config       map[string]*Object
}

// A revised is a Composition with a revision.
type revised struct{ composition, revision *Object }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

// name returns a name that is free for the kind and namespace. Objects of other kinds or namespaces
// may have it.
func (g *generator) name(k Kind, ns string) string {
	names := []string{"a", "orders", "x-1", "a.b-c", "0", "orders.example.org", "team-a", "long-" + fmt.Sprintf("%050d", 7), "n.n.n"}
	if !g.limits.Servable {
		names = append(names, "with:colon", "UPPER", "ümlaut", `quote"d`, "a b")
	}
	name := pick(g, names...)
	for g.byID[xp.ID{Group: k.Group, Kind: k.Kind, Namespace: ns, Name: name}] != nil {
		name = fmt.Sprintf("%s-%d", pick(g, names...), g.IntN(1000))
	}

	return name
}

// add adds an object. It ignores the namespace of a cluster-scoped kind.
func (g *generator) add(k Kind, role Role, ns, name string) *Object {
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
	g.remaining--
	g.Objects = append(g.Objects, o)
	g.byID[xp.RefTo(u).ID()], g.byItem[xp.Item{GroupResource: k.Resource(), Namespace: ns, Name: name}] = o, o

	return o
}

// addOwner adds an owner reference, and its field in managedFields.
func addOwner(o *Object, owner metav1.OwnerReference) {
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

func stringAt(o *unstructured.Unstructured, path ...string) string {
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

// refFields returns a reference as an object. namespaced is whether it may have a namespace.
func refFields(r xp.Ref, namespaced bool) map[string]any {
	m := map[string]any{"apiVersion": r.APIVersion, "kind": r.Kind, "name": r.Name}
	if namespaced && r.Namespace != "" {
		m["namespace"] = r.Namespace
	}

	return m
}

// missingRef returns a reference to an object that does not exist.
func (g *generator) missingRef(k Kind, ns string) xp.Ref {
	if !k.Namespaced {
		ns = ""
	}

	return xp.Ref{APIVersion: k.GroupVersion().String(), Kind: k.Kind, Namespace: ns, Name: fmt.Sprintf("missing-%d", g.IntN(1000))}
}

func (g *generator) unknownUID() types.UID {
	return types.UID(fmt.Sprintf("%08d-dead-4000-8000-%012d", g.Seed%1e8, g.IntN(1000)))
}
