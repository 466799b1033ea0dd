package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// managing is the namespace of the objects that are applied again, and part of their names.
const managing = "managers"

// Of each object one is restored, and a control is not. Their names are equally long.
const (
	restoredOne = managing + "-old-"
	controlOne  = managing + "-new-"
)

// managers are objects that are applied in several ways before and after a restore.
type managers struct {
	*suite
	drill.Platform

	// composition is the first Composition of each cluster.
	composition map[*stack.Cluster]*unstructured.Unstructured
	// last are the controls as they were last.
	last map[string]any
}

// fillManagers creates the objects in the source, and adds to the Composition what it later drops.
func (s *suite) fillManagers(t *testing.T) *managers {
	t.Helper()
	m := &managers{suite: s, Platform: drill.Platform{Namespace: managing, Crossplane: s.version}, composition: map[*stack.Cluster]*unstructured.Unstructured{}}
	must(t, m.Make(t.Context(), s.source, 0))
	m.compose(t, s.source, 0)
	m.make(t, s.source, restoredOne)

	return m
}

// backUpManagers backs up by label, since some of the objects are cluster-scoped.
func (s *suite) backUpManagers(t *testing.T, m *managers) {
	t.Helper()
	m.await(t, s.source, restoredOne)
	args := []string{"--include-namespaces", managing}
	if s.version == stack.V1 {
		args = append(args, clusterResources+"=true", "--selector", "scene="+managing)
	}
	backupWith(t, s.source, managing, args...)
}

// testManagers applies restored objects and controls in the same ways, and expects equal results.
func (s *suite) testManagers(t *testing.T, m *managers) {
	ctx := t.Context()
	must(t, m.Make(ctx, s.target, 0))
	m.compose(t, s.target, 0)
	m.make(t, s.target, controlOne)
	must(t, m.StartRestore(ctx, s.target, managing, managing, "--annotations", "velero.crossplane.io/observe-first=true"))
	s.awaitCompleted(t, managing)
	m.await(t, s.target, controlOne)
	m.await(t, s.target, restoredOne)
	nothing := func(string) bool { return false }
	t.Run("Restored", func(t *testing.T) { m.testAlike(t, nothing) })
	t.Run("Unforced", m.testUnforced)
	for i, p := range phasesOf(sort{})[1:] {
		t.Run(p.name+"FromComposition", func(t *testing.T) {
			m.compose(t, s.target, i+1)
			m.testAlike(t, m.isComposed)
		})
		t.Run(p.name, func(t *testing.T) {
			for _, a := range applyWays() {
				for _, prefix := range []string{controlOne, restoredOne} {
					m.apply(t, s.target, a, prefix, i+1)
				}
			}
			m.testAlike(t, m.isApplied)
		})
	}
	t.Run("UnforcedAgain", m.testUnforced)
}

// isComposed reports whether an object is a Bucket that follows the Composition. An XR that is
// applied without force stays on a revision.
func (m *managers) isComposed(name string) bool {
	return strings.HasPrefix(name, "Bucket ") && !strings.HasPrefix(name, "Bucket mr-") && !strings.Contains(name, "-plain")
}

// isApplied reports whether an object is one that an applier applies.
func (m *managers) isApplied(name string) bool {
	return !strings.HasPrefix(name, "Bucket ") && !strings.Contains(name, "-plain") || strings.HasPrefix(name, "Bucket mr-")
}

// make creates an object of each sort for each way, and one with only the required fields.
func (m *managers) make(t *testing.T, c *stack.Cluster, prefix string) {
	t.Helper()
	for _, a := range applyWays() {
		if a.base != nil {
			var first []*unstructured.Unstructured
			for _, k := range userKinds(m.version) {
				first = append(first, k.manifest(prefix+k.name+"-"+a.name, phase{}))
			}
			must(t, m.kubectl(t, c, a.base, first...))
		}
		m.apply(t, c, a, prefix, 0)
	}
	must(t, m.kubectl(t, c, []string{"--server-side"}, m.plain(prefix, "")...))
}

// apply applies the manifests of a phase.
func (m *managers) apply(t *testing.T, c *stack.Cluster, a applyWay, prefix string, number int) {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, k := range userKinds(m.version) {
		objects = append(objects, k.manifest(prefix+k.name+"-"+a.name, phasesOf(k)[number]))
	}
	must(t, m.kubectl(t, c, a.args, objects...))
}

// plain returns claims or XRs with an update policy, or with none.
func (m *managers) plain(prefix, policy string) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, k := range userKinds(m.version) {
		if k.kind == "Bucket" {
			continue
		}
		var extras map[string]any
		if policy != "" {
			extras = choiceOf(m.version, map[string]any{"compositionUpdatePolicy": policy})
		}
		objects = append(objects, k.manifest(prefix+k.name+"-plain", phase{extras: extras}))
	}

	return objects
}

// kubectl runs kubectl apply for the objects, and returns its output as an error if it fails.
func (m *managers) kubectl(t *testing.T, c *stack.Cluster, args []string, objects ...*unstructured.Unstructured) error {
	t.Helper()
	set, err := build.Ensure(t.Context(), os.Stderr, "kubectl")
	must(t, err)
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, u := range objects {
		list.Items = append(list.Items, *u)
	}
	b, err := list.MarshalJSON()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), set["kubectl"].Path, append([]string{"--kubeconfig", c.Kubeconfig(), "apply", "-f", "-"}, args...)...)
	cmd.Stdin = bytes.NewReader(b)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}

	return nil
}

// compose adds fields to the Composition's bucket. A label makes a new revision of it even if the
// resources are unchanged: on v1 only that causes an immediate reconcile of the XRs.
func (m *managers) compose(t *testing.T, c *stack.Cluster, number int) {
	t.Helper()
	ctx := t.Context()
	if m.composition[c] == nil {
		must(t, m.Compose(ctx, c))
		kind := schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"}
		u, err := get(ctx, c, kind, "", "environments-"+managing)
		must(t, err)
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		m.composition[c] = u
	}
	u := m.composition[c].DeepCopy()
	u.SetLabels(map[string]string{"phase": strconv.Itoa(number)})
	steps, _, err := unstructured.NestedSlice(u.Object, "spec", "pipeline")
	must(t, err)
	step, _ := steps[0].(map[string]any)
	resources, _, err := unstructured.NestedSlice(step, "input", "resources")
	must(t, err)
	bucket, _ := resources[0].(map[string]any)
	merge(bucket, map[string]any{"base": map[string]any{"spec": bucketSpecs()[number]}})
	must(t, unstructured.SetNestedSlice(step, resources, "input", "resources"))
	must(t, unstructured.SetNestedSlice(u.Object, steps, "spec", "pipeline"))
	must(t, c.ApplyObjects(ctx, u))
}

// objects returns the objects with a prefix by their distinguishing names: those that were applied,
// XRs and composed Buckets.
func (m *managers) objects(ctx context.Context, c *stack.Cluster, prefix string) (map[string]*unstructured.Unstructured, error) {
	kinds := []schema.GroupVersionKind{}
	for _, k := range userKinds(m.version) {
		kinds = append(kinds, schema.FromAPIVersionAndKind(k.apiVersion, k.kind))
	}
	objects := map[string]*unstructured.Unstructured{}
	for _, kind := range kinds {
		all, err := list(ctx, c, kind, managing, "")
		if err != nil {
			return nil, err
		}
		for i := range all {
			if u := &all[i]; strings.HasPrefix(u.GetName(), prefix) {
				objects[kind.Kind+" "+madeUp.ReplaceAllString(strings.TrimPrefix(u.GetName(), prefix), "$1-x")] = u
			}
		}
	}

	return objects, nil
}

// await waits until all objects with a prefix are Ready, and none is held.
func (m *managers) await(t *testing.T, c *stack.Cluster, prefix string) {
	t.Helper()
	want := (len(applyWays()) + 1) * 2 // The claims or XRs, and their Buckets.
	if m.version == stack.V1 {
		want *= 2 // Claims have XRs, and there are XRs without claims, but one Bucket for each.
		want += len(applyWays()) + 1
	}
	want += len(applyWays())
	must(t, c.Wait(t.Context(), patience, "the objects "+prefix+" to be Ready", func(ctx context.Context) error {
		objects, err := m.objects(ctx, c, prefix)
		if err == nil && len(objects) != want {
			err = fmt.Errorf("there are %d, not %d", len(objects), want)
		}
		for _, u := range objects {
			err = errors.Join(err, stack.HasCondition(u, "Synced", "True"), stack.HasCondition(u, "Ready", "True"))
			if drill.Held(u) {
				err = errors.Join(err, fmt.Errorf("%s is held", u.GetName()))
			}
		}

		return err
	}))
}

// testAlike expects restored objects to equal their controls, and some objects to have changed.
func (m *managers) testAlike(t *testing.T, changes func(name string) bool) {
	t.Helper()
	var wrong error
	err := stack.Wait(t.Context(), patience/4, "the restored objects to equal the controls", func(ctx context.Context) error {
		control, err := m.likenesses(ctx, controlOne)
		if err != nil {
			return err
		}
		restored, err := m.likenesses(ctx, restoredOne)
		if err != nil {
			return err
		}
		wrong = nil
		for _, name := range slices.Sorted(maps.Keys(control)) {
			if diff := cmp.Diff(control[name], restored[name]); diff != "" {
				wrong = errors.Join(wrong, fmt.Errorf("%s, -never restored, +restored:\n%s", name, diff))
			}
			if changes(name) && cmp.Equal(control[name], m.last[name]) {
				wrong = errors.Join(wrong, fmt.Errorf("%s that was never restored has not changed, so it proves nothing", name))
			}
		}
		if wrong != nil {
			return errors.New("it is not")
		}
		m.last = control

		return nil
	})
	if err != nil {
		t.Error(errors.Join(err, wrong))
	}
}

// testUnforced has two managers apply different update policies without force. Whether they
// conflict must not depend on a restore.
func (m *managers) testUnforced(t *testing.T) {
	for _, manager := range []struct{ name, policy string }{{"kubectl", "Manual"}, {"somebody", "Automatic"}} {
		said := map[string]string{}
		for _, prefix := range []string{controlOne, restoredOne} {
			for _, u := range m.plain(prefix, manager.policy) {
				err := m.kubectl(t, m.target, []string{"--server-side", "--field-manager=" + manager.name}, u)
				text, _, _ := strings.Cut(fmt.Sprint(err), "\n")
				said[prefix+u.GetKind()] = strings.ReplaceAll(text, prefix, "")
			}
		}
		for _, u := range m.plain("", "") {
			if diff := cmp.Diff(said[controlOne+u.GetKind()], said[restoredOne+u.GetKind()]); diff != "" {
				t.Errorf("%s applies %s without force: -never restored, +restored:\n%s", manager.name, u.GetKind(), diff)
			}
		}
		t.Logf("%s: %v", manager.name, said)
	}
	m.testAlike(t, func(string) bool { return false })
}

// These match the parts of names that differ: those that Crossplane generates, and whether it is
// the control. The name of the field manager is derived from that of the XR.
var (
	madeUp     = regexp.MustCompile(`((?:instance|xr|mr)-(?:server|client|second|plain))(?:-[0-9a-z]+)+`)
	composedBy = regexp.MustCompile(`(apiextensions\.crossplane\.io/composed/)[0-9a-f]+`)
)

// likenesses returns the fields of the objects with a prefix that must be equal.
func (m *managers) likenesses(ctx context.Context, prefix string) (map[string]any, error) {
	objects, err := m.objects(ctx, m.target, prefix)
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	for name, u := range objects {
		if err := stack.HasCondition(u, "Synced", "True"); err != nil {
			return nil, err
		}
		if u.GetKind() == "XEnvironment" { // Crossplane makes the name of an XR's Secret from the UID that the XR has first.
			unstructured.RemoveNestedField(u.Object, "spec", "writeConnectionSecretToRef", "name")
		}
		labels, annotations := u.GetLabels(), u.GetAnnotations()
		for _, key := range []string{"velero.io/backup-name", "velero.io/restore-name"} {
			delete(labels, key)
		}
		for _, key := range []string{"crossplane.io/external-create-pending", "crossplane.io/external-create-succeeded"} {
			if annotations[key] != "" {
				annotations[key] = "a time"
			}
		}
		likeness := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Likeness", "labels": labels, "annotations": annotations, "spec": u.Object["spec"], "managers": drill.ManagersOf(u),
		}}
		b, err := likeness.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("cannot encode %s: %w", u.GetName(), err)
		}
		b = bytes.ReplaceAll(b, []byte(prefix), []byte("x-"))
		b = composedBy.ReplaceAll(madeUp.ReplaceAll(b, []byte("$1-x")), []byte("$1"))
		if err := likeness.UnmarshalJSON(b); err != nil {
			return nil, fmt.Errorf("cannot decode %s: %w", u.GetName(), err)
		}
		all[name] = likeness.Object
	}

	return all, nil
}
