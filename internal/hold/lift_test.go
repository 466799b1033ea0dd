package hold

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A server keeps managedFields with the API server's code, and defaults the composition update
// policy of XRs.
type server struct {
	t      *testing.T
	fields *managedfields.FieldManager
	live   *unstructured.Unstructured
}

func newServer(t *testing.T, u *unstructured.Unstructured) *server {
	t.Helper()
	empty := &unstructured.Unstructured{Object: map[string]any{}}
	empty.SetGroupVersionKind(u.GroupVersionKind())

	return &server{t: t, live: empty, fields: managedfieldstest.NewFakeFieldManager(typesOf(t, u), u.GroupVersionKind())}
}

// typesOf returns the types of a CustomResourceDefinition, as far as managedFields need them.
func typesOf(t *testing.T, u *unstructured.Unstructured) managedfields.TypeConverter {
	t.Helper()
	const schema = `{"type": "object", "x-kubernetes-group-version-kind": [{"group": %q, "version": %q, "kind": %q}], "properties": {
		"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "type": {"type": "string"},
		"metadata": {"type": "object", "properties": {
			"annotations": {"type": "object", "additionalProperties": {"type": "string"}}, "labels": {"type": "object", "additionalProperties": {"type": "string"}},
			"finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}}, "x-kubernetes-preserve-unknown-fields": true},
		"spec": {"type": "object", "properties": {
			"compositionUpdatePolicy": {"type": "string"}, "region": {"type": "string"},
			"crossplane": {"type": "object", "properties": {"compositionUpdatePolicy": {"type": "string"}}, "x-kubernetes-preserve-unknown-fields": true},
			"managementPolicies": {"type": "array", "items": {"type": "string"}}}, "x-kubernetes-preserve-unknown-fields": true},
		"status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "data": {"type": "object", "additionalProperties": {"type": "string"}}}}`
	gvk := u.GroupVersionKind()
	of := &spec.Schema{}
	xptest.Must(t, json.Unmarshal(fmt.Appendf(nil, schema, gvk.Group, gvk.Version, gvk.Kind), of))
	types := xptest.Value(managedfields.NewTypeConverter(map[string]*spec.Schema{"kind": of}, false))

	return types
}

func (s *server) defaulted(u *unstructured.Unstructured) *unstructured.Unstructured {
	if i := (xp.Instance{Unstructured: u}); u.GetKind() == xptest.XR("x").GetKind() {
		if _, ok := i.UpdatePolicy(); !ok {
			if err := i.SetUpdatePolicy("Automatic"); err != nil {
				s.t.Fatal(err)
			}
		}
	}

	return u
}

// write is a create, an update or a patch.
func (s *server) write(u *unstructured.Unstructured, manager string) {
	s.t.Helper()
	after, err := s.fields.Update(s.live, s.defaulted(u.DeepCopy()), manager)
	s.take(after, err)
}

// apply is a forced server-side apply.
func (s *server) apply(u *unstructured.Unstructured, manager string) {
	s.t.Helper()
	after, err := s.fields.Apply(s.live, u.DeepCopy(), manager, true)
	s.take(after, err)
	s.defaulted(s.live)
}

func (s *server) take(after runtime.Object, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	u, ok := after.(*unstructured.Unstructured)
	if !ok {
		s.t.Fatalf("got a %T", after)
	}
	s.live = u
}

func (s *server) patch(p map[string]any, manager string) {
	s.t.Helper()
	s.write(xptest.Merge(s.live, p), manager)
}

// seen returns the object as cluster.Cluster trims it.
func (s *server) seen() *unstructured.Unstructured {
	u := s.live.DeepCopy()
	if !WritesManagers(u) {
		set(u.Object, Managers(u), "metadata", "managedFields")
	}

	return u
}

// execute makes a change as cluster.Cluster does.
func (s *server) execute(c Change) {
	s.t.Helper()
	configuration, ok := c.Applied()
	if !ok {
		s.patch(c.Patch, managerOf(c))

		return
	}
	b, err := json.Marshal(configuration)
	if err != nil {
		s.t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(b); err != nil {
		s.t.Fatal(err)
	}
	s.apply(u, FieldManager)
}

func managerOf(c Change) string {
	if c.Manager == "" {
		return FieldManager
	}

	return c.Manager
}

// managers returns the entries in the API server's order.
func (s *server) managers() []metav1.ManagedFieldsEntry { return s.live.GetManagedFields() }

func TestLiftLeavesNoManager(t *testing.T) {
	applied := func(u *unstructured.Unstructured, options ...xptest.Option) *unstructured.Unstructured {
		m := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": u.GetName()}, "spec": map[string]any{"region": "eu"}}}
		m.SetGroupVersionKind(u.GroupVersionKind())

		return xptest.With(m, options...)
	}
	policies := func(of ...any) xptest.Option { return xptest.Field(of, "spec", "managementPolicies") }
	automatic := xptest.Policy("Automatic")
	xr, mr, v2 := xptest.XR("x"), xptest.MR("b"), xptest.XRV2("x", xptest.Annotated("team", "a"), xptest.Refs(xptest.MR("b")))
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		// make creates the object that is backed up. during is another writer's change during the
		// hold.
		make   func(s *server)
		during func(s *server)
		// after is a change by this plugin during the hold.
		after func(s *server)
		of    Hold
		// steps is the number of patches that end the hold. If clean, none is needed after them to
		// take this plugin out of the managers.
		steps int
		clean bool
	}{
		"ServerSide": {
			object: xr, reason: "The default has no manager, and the API server sets it again.", steps: 1,
			make: func(s *server) {
				s.write(xr, "crossplane")
				s.live = xr.DeepCopy()
				s.apply(applied(xr), "argocd-controller")
			},
		},
		"Explicit": {
			object: xr, reason: "Server-side apply needs a second patch for its own manager.", steps: 2,
			make: func(s *server) {
				s.apply(applied(xr, automatic), "kustomize-controller")
				s.write(xptest.With(xr, automatic, managersFrom(s.live)), "crossplane")
			},
		},
		"Manual": {
			object: xr, reason: "The user's policy equals that of the hold, so no field has to return.", steps: 1,
			make: func(s *server) {
				s.apply(applied(xr, xptest.Policy("Manual")), "argocd-controller")
				s.write(xptest.With(xr, xptest.Policy("Manual"), managersFrom(s.live)), "crossplane")
			},
		},
		"MR": {object: mr, reason: "Only annotations of an MR are removed.", steps: 1, clean: true, make: func(s *server) { s.write(mr, "crossplane-aws-provider") }},
		"Owned": {
			object: xr, reason: "A nested XR has got its controller during the hold.", steps: 2, clean: true, make: func(s *server) { s.write(xr, "kubectl-client-side-apply") },
			after: func(s *server) {
				s.patch(map[string]any{"metadata": map[string]any{"ownerReferences": []any{
					map[string]any{"apiVersion": xptest.LegacyVersion, "kind": xptest.LegacyKind, "name": "outer", "uid": "outer", "controller": true},
				}}}, FieldManager)
			},
		},
		"Observes": {
			object: mr, reason: "Crossplane must manage the policies of a Composition again.", steps: 2, of: Hold{Observes: true},
			make: func(s *server) {
				s.apply(applied(mr, policies("Observe", "Create")), "apiextensions.crossplane.io/composed/1")
				s.write(xptest.With(mr, policies("Observe", "Create"), managersFrom(s.live)), "crossplane-aws-provider")
			},
		},
		"ObservesByHand": {
			object: mr, reason: "The user must manage their own policies again.", steps: 1, of: Hold{Observes: true},
			make: func(s *server) { s.write(xptest.With(mr, policies("*")), "kubectl-create") },
		},
		"Unnamed": {
			object: v2, reason: "What no manager has stays, also if no manager has anything beside it.", steps: 1,
			make: func(s *server) {
				s.apply(applied(v2), "argocd-controller")
				s.live = xptest.Merge(s.live, v2.Object)
			},
		},
		"Taken": {
			object: xr, reason: "A change by another writer during the hold stays.", steps: 2,
			make: func(s *server) {
				s.apply(applied(xr), "argocd-controller")
				s.write(xptest.With(xr, managersFrom(s.live)), "crossplane")
			},
			during: func(s *server) { s.apply(applied(xr, automatic), "argocd-controller") },
		},
	}
	for name, tc := range cases {
		for _, point := range []string{"Restored", "Killed"} {
			t.Run(name+point, func(t *testing.T) {
				origin := newServer(t, tc.object)
				tc.make(origin)
				backup := writtenBefore(origin.live)
				if tc.during != nil {
					tc.during(origin)
				}
				want := origin.managers()

				s := newServer(t, backup)
				item := backup.DeepCopy()
				xptest.Value(Put(item, tc.of))
				Manage(item, backup, noon)
				created := item.DeepCopy()
				created.SetManagedFields(nil)
				created.SetCreationTimestamp(metav1.NewTime(noon))
				s.write(created, "velero-server")
				steps := tc.steps
				if point == "Restored" {
					s.patch(map[string]any{"metadata": map[string]any{"managedFields": item.Object["metadata"].(map[string]any)["managedFields"]}}, "velero-server") //nolint:forcetypeassert // It is one.
				} else {
					steps = 2 // The former managers are written.
				}
				if tc.during != nil {
					tc.during(s)
				}
				if tc.after != nil {
					steps = tc.steps
					tc.after(s)
				}
				if seen := s.seen(); xp.IsComposite(seen) {
					s.execute(Change{Target: seen, Patch: Unverified.Unpause(seen, xptest.Value(Of(seen)), noon)})
				}
				took := 0
				for ; xp.HasAnnotation(s.live, Annotation); took++ {
					if took > steps {
						t.Fatalf("%s\nstill held after %d patches", tc.reason, took)
					}
					s.execute(Unverified.Lift(s.seen(), xptest.Value(Of(s.live)), "step"))
				}
				xptest.Same(t, steps, took, tc.reason+" The patches are counted.")
				if _, left := WithoutOwn(s.live); left && tc.clean {
					t.Errorf("%s\nit takes another patch to take this plugin out of the managers: %v", tc.reason, s.live.GetManagedFields())
				}
				if point == "Killed" && tc.during != nil {
					return
				}
				xptest.Same(t, bySet(t, want), bySet(t, s.managers()), tc.reason+" The managers must return.", cmpopts.EquateEmpty())
				settings := func(u *unstructured.Unstructured) any { return []any{u.Object["spec"], u.GetAnnotations()} }
				xptest.Same(t, settings(origin.live), settings(s.live), tc.reason+" The settings must return.", cmpopts.EquateEmpty())
			})
		}
	}
}

// writtenBefore returns u with managedFields older than its restore.
func writtenBefore(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	entries := u.GetManagedFields()
	for i := range entries {
		entries[i].Time = new(metav1.NewTime(noon.AddDate(0, 0, -1)))
	}
	u.SetManagedFields(entries)

	return u
}

// managersFrom is the option that gives an object the fields and managedFields of u.
func managersFrom(u *unstructured.Unstructured) xptest.Option {
	return func(o *unstructured.Unstructured) { o.SetManagedFields(u.GetManagedFields()) }
}

// bySet returns the fields of each manager.
func bySet(t *testing.T, entries []metav1.ManagedFieldsEntry) map[string]any {
	t.Helper()
	sets := map[string]any{}
	for _, e := range entries {
		var fields any
		xptest.Must(t, json.Unmarshal(e.FieldsV1.Raw, &fields))
		sets[e.Manager+" "+string(e.Operation)+" "+e.APIVersion+" "+e.Subresource] = fields
	}

	return sets
}
