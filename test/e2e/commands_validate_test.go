package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// ward is a namespace that validate and wait look at.
const ward = "ward"

// A validation is the JSON report of validate, as programs decode it.
type validation struct {
	Summary struct {
		XRs      int `json:"xrs"`
		Composed int `json:"composed"`
		Adopted  int `json:"adopted"`
	} `json:"summary"`
	Problems []problem `json:"problems"`
}

type problem struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Reason   string `json:"reason"`
	Next     string `json:"next"`
	Object   struct {
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"object"`
}

// validate runs validate on the target and checks its exit code.
func (s *suite) validate(t *testing.T, code int, args ...string) validation {
	t.Helper()
	v, r := s.judge(t, args...)
	if r.code != code {
		t.Errorf("validate %s ended with %d, not %d: %s\n%s", args, r.code, code, r.stderr, r.stdout)
	}

	return v
}

// judge runs validate on the target and accepts any exit code.
func (s *suite) judge(t *testing.T, args ...string) (v validation, r run) {
	t.Helper()
	r = command(t, s.target, append([]string{"validate", "-o", "json"}, args...)...)
	must(t, json.Unmarshal([]byte(r.stdout), &v))

	return v, r
}

// makeWard fills the namespace and backs it up.
func (s *suite) makeWard(t *testing.T) *tenant {
	t.Helper()
	n := s.few(t, s.source, drill.Platform{Namespace: ward}, 2)
	s.backUp(t, s.source, n)

	return n
}

// testValidate restores the namespace while the provider is stopped, so that its objects are held.
// Then it lets them be adopted, and damages them.
func (s *suite) testValidate(t *testing.T, n *tenant) {
	ctx := t.Context()
	if r := command(t, s.target, "wait", "-n", ward, "--timeout", "1s"); r.code != 4 || r.stdout != "" {
		t.Errorf("wait for what is not restored ended with %d: %s%s", r.code, r.stdout, r.stderr)
	}
	must(t, s.target.Stop(stack.CloudProvider))
	must(t, n.StartRestore(ctx, s.target, ward, ward))
	must(t, drill.AwaitOperations(ctx, s.target, ward))
	t.Run("Held", func(t *testing.T) { s.testValidateHeld(t, len(s.roots(t, n))) })
	waited := make(chan run)
	go func() { waited <- s.runAs(ctx, "", []string{"wait", "-n", ward, "--restore", ward, "--timeout", "4m"}) }()
	must(t, s.target.Start(ctx, stack.CloudProvider))
	t.Run("Adopted", func(t *testing.T) { s.testWait(t, n, <-waited) })
	t.Run("Healthy", func(t *testing.T) { s.testValidateHealthy(t, n) })
	t.Run("Damaged", func(t *testing.T) { s.testValidateDamaged(t, n) })
}

// testValidateHeld checks that validate reports every hold and its cause.
func (s *suite) testValidateHeld(t *testing.T, roots int) {
	s.eventually(t, "all that is held to wait for the provider", func(context.Context) error {
		held := 0
		v, _ := s.judge(t, "--restore", ward)
		for _, p := range v.Problems {
			if p.Code == "Held" && strings.HasSuffix(p.Object.Kind, "Environment") && strings.Contains(p.Reason, "[AwaitingProvider]") {
				held++
			}
		}
		if held != roots {
			return fmt.Errorf("%d of %d are", held, roots)
		}

		return nil
	})
	if r := command(t, s.target, "wait", "-n", ward, "--timeout", "1s", n0(ward)); r.code != 4 {
		t.Errorf("wait for what is held ended with %d: %s", r.code, r.stderr)
	}
}

// n0 is the name of a tenant's first instance.
func n0(namespace string) string { return drill.Platform{Namespace: namespace}.Name(0) }

// testWait checks that wait has returned when the last XR or claim was adopted, and not before.
func (s *suite) testWait(t *testing.T, n *tenant, r run) {
	instances, err := n.Instances(t.Context(), s.target)
	must(t, err)
	if len(instances) != n.size || slices.ContainsFunc(instances, func(u unstructured.Unstructured) bool { return drill.Held(&u) }) || r.code != 0 {
		t.Errorf("it ended with %d, and there are these: %v\n%s%s", r.code, instances, r.stdout, r.stderr)
	}
	s.awaitCompleted(t, ward)
}

// testValidateHealthy checks that validate finds no problem after adoption.
func (s *suite) testValidateHealthy(t *testing.T, n *tenant) {
	s.settle(t, n)
	v := s.validate(t, 0, "--restore", ward, "--strict")
	if composed := 3 * n.size; v.Summary.XRs != n.size || v.Summary.Composed != composed || v.Summary.Adopted != composed {
		t.Errorf("got %+v", v)
	}
	for _, names := range [][]string{{ward + "/nobody"}, {"--restore", "nobody"}} {
		if v := s.validate(t, 3, names...); len(v.Problems) != 1 || v.Problems[0].Code != "NotFound" {
			t.Errorf("%s: what is not there is a problem; got %+v", names, v.Problems)
		}
	}
}

// testValidateDamaged does every kind of damage at once, and checks that validate reports each.
func (s *suite) testValidateDamaged(t *testing.T, n *tenant) {
	ctx := t.Context()
	must(t, s.target.Stop(stack.Crossplane))
	t.Cleanup(func() { must(t, s.target.Start(context.WithoutCancel(ctx), stack.Crossplane)) })
	xrs, err := n.Composites(ctx, s.target)
	must(t, err)
	mrs, err := n.Managed(ctx, s.target)
	must(t, err)
	xr, stuck := &xrs[0], &xrs[1]
	mine := map[string]*unstructured.Unstructured{}
	for _, u := range mrs {
		if metav1.IsControlledBy(&u, xr) {
			mine[u.GetKind()] = &u
		}
	}
	bucket, network, database := mine["Bucket"], mine["Network"], mine["Database"]
	refs := n.fieldOf("resourceRefs")

	must(t, drill.Patch(ctx, s.target, stuck, under(refs, append(listAt(stuck, refs), map[string]any{"apiVersion": bucket.GetAPIVersion(), "kind": "Bucket", "name": "lost"}))))
	must(t, drill.Patch(ctx, s.target, xr, under(refs, slices.DeleteFunc(listAt(xr, refs), func(ref any) bool { m, _ := ref.(map[string]any); return m["name"] == bucket.GetName() }))))
	must(t, drill.Patch(ctx, s.target, network, map[string]any{"metadata": map[string]any{"ownerReferences": nil}}))
	// The garbage collector ignores an owner whose kind it can't look up.
	must(t, drill.Patch(ctx, s.target, database, map[string]any{"metadata": map[string]any{"ownerReferences": []any{map[string]any{
		"apiVersion": "gone.example.org/v1", "kind": "Gone", "name": "gone", "uid": "01234567-89ab-cdef-0123-456789abcdef", "controller": true,
	}}}}))
	want := []string{
		"problem DeadController Database " + database.GetName(),
		"problem Orphaned Bucket " + bucket.GetName(),
		"problem Uncontrolled Network " + network.GetName(),
		"problem UsageLeftBehind Usage " + xr.GetName() + "-left",
	}
	must(t, s.target.ApplyObjects(ctx, s.leftover(xr, ward, "left")))
	if s.version == stack.V1 {
		// A cluster-scoped object that belongs to no claim is in no namespace.
		want = append(want, "warning Dangling Bucket lost")
		if diff := cmp.Diff(ordered(want), s.awaitFound(t, want)); diff != "" {
			t.Errorf("-want, +found:\n%s", diff)
		}

		return
	}
	must(t, s.target.ApplyObjects(ctx,
		s.bad(network, "nameless", map[string]string{"crossplane.io/external-create-succeeded": "2026-01-02T03:04:05Z", annotationPaused: "true"}),
		s.bad(network, "double", map[string]string{externalName: network.GetAnnotations()[externalName]}),
		s.bad(network, "flight", map[string]string{createPending: "2026-01-02T03:04:05Z"})))
	s.makeReady(t, "nameless")
	s.dyingDefinition(t)
	want = append(want, "problem XRDTerminating CompositeResourceDefinition relics.ward.example.org", "problem Duplicated Network "+max("double", network.GetName()),
		"problem CreatePending Network flight", "problem IdentityMissing Network nameless", "warning NotSynced Network flight",
		"problem Dangling Bucket lost", "problem Stuck Environment "+stuck.GetName(), "problem Stuck Environment "+xr.GetName())
	if diff := cmp.Diff(ordered(want), s.awaitFound(t, want)); diff != "" {
		t.Errorf("-want, +found:\n%s", diff)
	}
	s.wantGolden(t, "damaged", "validate", "-n", ward)
}

func ordered(all []string) []string {
	slices.Sort(all)

	return all
}

// awaitFound waits until validate finds all wanted problems, and returns what it finds.
func (s *suite) awaitFound(t *testing.T, want []string) []string {
	t.Helper()
	var found []string
	err := s.target.Wait(t.Context(), patience, "all damage to be found", func(context.Context) error {
		found = nil
		v, _ := s.judge(t, "-n", ward)
		for _, p := range v.Problems {
			found = append(found, fmt.Sprintf("%s %s %s %s", p.Severity, p.Code, p.Object.Kind, p.Object.Name))
		}
		for _, w := range want {
			if !slices.Contains(found, w) {
				return errors.New(w + " is not found")
			}
		}

		return nil
	})
	if err != nil {
		t.Error(err)
	}

	return ordered(found)
}

// fieldOf returns the path of an XR's field that Crossplane owns.
func (n *tenant) fieldOf(name string) []string {
	if n.Crossplane.IsV1() {
		return []string{"spec", name}
	}

	return []string{"spec", "crossplane", name}
}

func listAt(u *unstructured.Unstructured, path []string) []any {
	list, _, _ := unstructured.NestedSlice(u.Object, path...)

	return list
}

func under(path []string, value any) map[string]any {
	patch := map[string]any{path[len(path)-1]: value}
	for n := len(path) - 2; n >= 0; n-- {
		patch = map[string]any{path[n]: patch}
	}

	return patch
}

// bad returns a copy of an MR without an XR and with other annotations.
func (s *suite) bad(like *unstructured.Unstructured, name string, annotations map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": like.Object["spec"]}}
	u.SetGroupVersionKind(like.GroupVersionKind())
	u.SetNamespace(like.GetNamespace())
	u.SetName(name)
	u.SetAnnotations(annotations)
	u.SetFinalizers([]string{"finalizer.managedresource.crossplane.io"})

	return u
}

// makeReady sets the condition Ready of a Network.
func (s *suite) makeReady(t *testing.T, name string) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2026-01-02T03:04:05Z",
	}}}}}
	u.SetGroupVersionKind(s.mrKind("Network"))
	u.SetNamespace(ward)
	u.SetName(name)
	must(t, s.target.ApplyStatus(t.Context(), u))
}

// dyingDefinition deletes an XRD that a finalizer keeps.
func (s *suite) dyingDefinition(t *testing.T) {
	t.Helper()
	objects, err := stack.Parse([]byte(`
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: relics.ward.example.org, finalizers: [example.org/keep]}
spec:
  group: ward.example.org
  names: {kind: Relic, plural: relics}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
`))
	must(t, err)
	must(t, s.target.ApplyObjects(t.Context(), objects...))
	s.delete(t, objects[0], metav1.DeletePropagationBackground)
}
