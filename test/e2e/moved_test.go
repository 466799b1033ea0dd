package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// The twice tenant has one network. Velero alone restores it to another namespace, then to its own.
const (
	twice   = "twice"
	twiceTo = "twice-elsewhere"
)

var kindNetwork = schema.GroupVersionKind{Group: "cloud.m.example.org", Version: "v1alpha1", Kind: "Network"}

// makeTwice creates a network that no XR composes, and returns its external-name.
func (s *suite) makeTwice(t *testing.T) string {
	t.Helper()
	must(t, drill.Platform{Crossplane: s.version, Namespace: twice}.Make(t.Context(), s.source, 0))
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"forProvider": map[string]any{"cidr": "10.0.0.0/16"}}}}
	u.SetGroupVersionKind(kindNetwork)
	u.SetNamespace(twice)
	u.SetName(twice + "-network")
	must(t, s.source.ApplyObjects(t.Context(), u))
	name := ""
	must(t, s.source.Wait(t.Context(), patience, "the network", func(ctx context.Context) error {
		live, err := get(ctx, s.source, kindNetwork, twice, u.GetName())
		if err != nil {
			return err
		}
		name = live.GetAnnotations()[externalName]

		return stack.HasCondition(live, "Ready", "True")
	}))

	return name
}

// testTwiceAlone is the control: after a restore by Velero alone two MRs manage one external
// resource, and the deletion of one MR deletes the external resource of both.
func (s *suite) testTwiceAlone(t *testing.T, external string) {
	ctx := t.Context()
	n := drill.Platform{Crossplane: s.version, Namespace: twice}
	for name, args := range map[string][]string{"twice-moved": {"--namespace-mappings", twice + ":" + twiceTo}, "twice-back": nil} {
		must(t, n.StartRestore(ctx, s.target, name, twice, args...))
		s.awaitCompleted(t, name)
	}
	s.eventually(t, "two MRs to manage one network (the control)", func(ctx context.Context) error {
		entries, err := s.cloud.Journal(ctx, 0, api.Read)
		if err != nil {
			return err
		}
		managers := map[string]bool{}
		for _, e := range entries {
			if e.Cluster == "target" && e.ID == external {
				managers[e.ManagedBy] = true
			}
		}
		if len(managers) != 2 {
			return fmt.Errorf("it is managed by %v", managers)
		}

		return nil
	})
	r, err := s.target.Resource(ctx, kindNetwork, twice)
	must(t, err)
	must(t, r.Delete(ctx, twice+"-network", metav1.DeleteOptions{}))
	s.eventually(t, "the network of both to be deleted in the cloud", func(ctx context.Context) error {
		entries, err := s.cloud.Journal(ctx, 0, api.Delete)
		for _, e := range entries {
			if e.ID == external {
				return nil
			}
		}

		return fmt.Errorf("it is there: %w", err)
	})
}

// testMovedBack moves a restored namespace back beside itself. It expects the second MRs of
// external resources to be held, and their deletion to leave these external resources alone.
func (s *suite) testMovedBack(t *testing.T, w *way) {
	ctx := t.Context()
	live, back := w.restored(), *w.tenant
	seq := s.last(t)
	s.start(t, &back, "moved-back", "--item-operation-timeout=15s")
	s.wantPhase(t, "moved-back", "PartiallyFailed")
	mrs, err := back.Managed(ctx, s.target)
	must(t, err)
	if len(mrs) != 3*w.size {
		t.Errorf("there are %v", names(mrs))
	}
	details := s.details(t, "moved-back")
	for i := range w.size {
		wantMessage(t, "the details of the restore", details, w.namespace+"/"+back.Name(i)+" stays held", w.to+"/"+back.Name(i), "the same external-name")
	}
	for _, u := range mrs {
		if other := w.to + "/" + u.GetName(); !paused(&u) || !strings.Contains(markOf(&u), other) {
			t.Errorf("%s %s/%s is not held because of %s: %v", u.GetKind(), u.GetNamespace(), u.GetName(), other, u.GetAnnotations())
		}
		s.delete(t, &u, metav1.DeletePropagationBackground)
	}
	s.eventually(t, "the restored MRs to be gone", func(ctx context.Context) error {
		mrs, err := back.Managed(ctx, s.target)
		if err == nil && len(mrs) > 0 {
			err = fmt.Errorf("there are %v", names(mrs))
		}

		return err
	})
	entries, err := s.cloud.Journal(ctx, seq)
	must(t, err)
	for _, e := range entries {
		if strings.Contains(e.ManagedBy, ", "+w.namespace+"/") {
			t.Errorf("the cloud got the call %s %s %s from a restored MR: %s", e.Op, e.Kind, e.ID, e.ManagedBy)
		}
	}
	s.settle(t, live)
	s.wantSound(t, live)
}
