//go:build matrix

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

var (
	mrdKind    = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Kind: "ManagedResourceDefinition"}
	policyKind = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Kind: "ManagedResourceActivationPolicy"}
)

// Scenes whose target has a provider with the capability safe-start, and an inactive kind.
const (
	inactive  = "inactive"
	asleep    = "asleep"
	activated = "activated"

	networkMRD, bucketMRD, databaseMRD = "networks.cloud.m.example.org", "buckets.cloud.m.example.org", "databases.cloud.m.example.org"
)

func activationScenes() map[string]*shape {
	scene := func(dir string, more int, args ...string) drill.Scene {
		return drill.Scene{Dir: "definitions" + dir, Count: few, Size: few * (2 + more), RestoreArgs: args}
	}

	return map[string]*shape{
		inactive: {
			reason: "A kind that a tenant's XRs compose is activated by a user, and not by a restore of the namespace.",
			Scene:  scene("-network", 1, "--include-namespaces", inactive),
		},
		asleep:    {reason: "An MR whose kind is not active waits until a user activates it, though its CRD is there.", Scene: scene("", 0)},
		activated: {reason: "A whole restore brings the policy that activates the kind.", Scene: scene("-database", 1, withoutCRDs...)},
	}
}

func TestMatrixActivationV2(t *testing.T) { testActivation(t, stack.V2) }

func TestMatrixActivationV24(t *testing.T) { testActivation(t, stack.V24) }

// testActivation loses a cluster and restores into one whose provider defines all of its kinds and
// has none active, like a provider with the capability safe-start.
func testActivation(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	s := newStage(t, version)
	scenes := activationScenes()

	s.source = s.bare(t, "source")
	s.usePolicy(t, s.source, databaseMRD)
	for _, name := range []string{networkMRD, bucketMRD, databaseMRD} {
		crd, err := get(ctx, s.source, crdKind, "", name)
		must(t, err)
		s.define(t, s.source, crd, "Active")
	}
	s.fillScenes(t, "v2", scenes, func(string) bool { return false })

	s.target = s.bare(t, "target")
	for name, n := range scenes {
		s.installFunction(t, s.target, name, true)
		must(t, n.Install(ctx, s.target, ""))
	}
	s.usePolicy(t, s.target)
	s.define(t, s.target, s.withdraw(t, "networks"), "Inactive")
	s.define(t, s.target, s.takeAway(t, "databases"), "Inactive")
	buckets, err := get(ctx, s.target, crdKind, "", bucketMRD)
	must(t, err)
	s.define(t, s.target, buckets, "Inactive")
	must(t, s.target.UsePlugin(ctx, true))

	must(t, scenes[inactive].StartRestore(ctx, s.target))
	must(t, scenes[asleep].StartRestore(ctx, s.target))
	s.wantActivations(t, scenes)
	must(t, scenes[activated].StartRestore(ctx, s.target))
	s.eventually(t, "the policy of the backup to activate the databases", func(ctx context.Context) error { return s.isActive(ctx, databaseMRD) })
	if err := s.isActive(ctx, networkMRD); err == nil {
		t.Error("Something has activated the networks")
	}

	s.activate(t, networkMRD)
	s.activate(t, bucketMRD)
	s.awaitServed(t, networkMRD)
	s.awaitServed(t, databaseMRD)
	must(t, s.target.Start(ctx, stack.CloudProvider))
	must(t, s.target.RestartVelero(ctx)) // Velero discovers the kinds only after a while.
	s.awaitCompleted(t, asleep)
	for _, name := range []string{inactive, activated} {
		must(t, drill.Platform{}.StartRestore(ctx, s.target, name+"-again", name, scenes[name].RestoreArgs...))
	}
	for _, name := range []string{inactive, activated} {
		s.awaitCompleted(t, name+"-again")
		s.awaitEnd(t, name) // For Velero it is an error that it could not restore a kind that is not served.
	}
	now, err := s.cloud.Journal(ctx, 0)
	must(t, err)
	for name, n := range scenes {
		t.Run(name, func(t *testing.T) {
			must(t, n.AwaitReady(ctx, s.target))
			s.testSettled(t, n, now[len(now)-1].Seq)
		})
	}
}

// wantActivations checks that restores name the MRDs to activate, and that no MRD was activated.
func (s *suite) wantActivations(t *testing.T, scenes map[string]*shape) {
	t.Helper()
	for name, says := range map[string][]string{
		inactive: {"its kind is not served, because its ManagedResourceDefinition " + networkMRD + " is not active; activate it: "},
		asleep:   {"its provider does not reconcile it, because its ManagedResourceDefinition " + bucketMRD + " is not active; activate it: "},
	} {
		s.eventually(t, name+" to name the MRD to activate", func(ctx context.Context) error {
			out, err := s.target.Velero(ctx, "restore", "describe", name, "--details")
			if err == nil && linesWith(out, says...) < few {
				err = fmt.Errorf("%d lines have %q:\n%s", linesWith(out, says...), says, out)
			}

			return err
		})
		for _, u := range s.orders(t, scenes[name], few) {
			if !paused(&u) || !drill.Held(&u) {
				t.Errorf("%s XR %s is not held: %v", scenes[name].reason, u.GetName(), u.GetAnnotations())
			}
		}
	}
	for _, name := range []string{networkMRD, bucketMRD, databaseMRD} {
		if err := s.isActive(t.Context(), name); err == nil {
			t.Errorf("Something has activated %s", name)
		}
	}
	policies, err := list(t.Context(), s.target, policyKind, "", "")
	must(t, err)
	if len(policies) > 0 {
		t.Errorf("A restore of a namespace has brought the policies %v", names(policies))
	}
	out, _, _, err := s.target.Plugin(t.Context(), s.target.Kubeconfig(), "validate", "-n", inactive)
	must(t, err)
	if !strings.Contains(strings.Join(strings.Fields(out), " "), "ManagedResourceDefinition "+bucketMRD+" is not active; activate it: ") { // It names the first one.
		t.Errorf("validate does not name the MRD to activate:\n%s", out)
	}
}

// usePolicy makes a cluster activate those MRDs and no others.
func (s *suite) usePolicy(t *testing.T, c *stack.Cluster, names ...string) {
	t.Helper()
	r, err := c.Resource(t.Context(), policyKind, "")
	must(t, err)
	must(t, r.Delete(t.Context(), "default", metav1.DeleteOptions{}))
	if len(names) > 0 {
		must(t, c.Apply(t.Context(), []byte("{apiVersion: apiextensions.crossplane.io/v1alpha1, kind: ManagedResourceActivationPolicy, metadata: {name: fleet}, "+
			"spec: {activate: ["+strings.Join(names, ", ")+"]}}")))
	}
}

// define creates the MRD of a CRD, as a provider revision does.
func (s *suite) define(t *testing.T, c *stack.Cluster, crd *unstructured.Unstructured, state string) {
	t.Helper()
	spec, _, err := unstructured.NestedMap(crd.Object, "spec")
	must(t, err)
	spec["state"] = state
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(mrdKind)
	u.SetName(crd.GetName())
	must(t, c.ApplyObjects(t.Context(), u))
}

func (s *suite) isActive(ctx context.Context, name string) error {
	mrd, err := get(ctx, s.target, mrdKind, "", name)
	if err != nil {
		return err
	}
	if state, _, _ := unstructured.NestedString(mrd.Object, "spec", "state"); state != "Active" {
		return fmt.Errorf("%s is %s", name, state)
	}

	return nil
}

// activate does what the messages ask the user to do.
func (s *suite) activate(t *testing.T, name string) {
	t.Helper()
	mrd, err := get(t.Context(), s.target, mrdKind, "", name)
	must(t, err)
	must(t, drill.Patch(t.Context(), s.target, mrd, map[string]any{"spec": map[string]any{"state": "Active"}}))
}

func (s *suite) awaitServed(t *testing.T, name string) {
	t.Helper()
	s.eventually(t, name+" to be served", func(ctx context.Context) error {
		crd, err := get(ctx, s.target, crdKind, "", name)
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
				return nil
			}
		}

		return fmt.Errorf("%s is not Established", name)
	})
}
