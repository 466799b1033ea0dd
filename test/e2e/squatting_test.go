package e2e

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// The squatted tenant has an MR, and the squatter another one with the same external-name. The
// former is restored to a namespace of another name.
const (
	squatted = "squatted"
	squatter = "squatter"
	moved    = "moved"
)

// makeSquatted backs up a namespace with an MR that no XR composes, and returns the MR.
func (s *suite) makeSquatted(t *testing.T, l *targets) *unstructured.Unstructured {
	t.Helper()
	ctx := t.Context()
	n := s.few(t, s.source, drill.Platform{Namespace: squatted}, 0)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": l.bucket(t).Object["spec"]}}
	u.SetGroupVersionKind(l.bucket(t).GroupVersionKind())
	u.SetNamespace(squatted)
	u.SetName(squatted + "-bucket")
	u.SetAnnotations(map[string]string{externalName: squatted + "-external"})
	must(t, s.source.ApplyObjects(ctx, u))
	var live *unstructured.Unstructured
	must(t, s.source.Wait(ctx, patience, "the MR "+u.GetName(), func(ctx context.Context) (err error) {
		if live, err = get(ctx, s.source, u.GroupVersionKind(), squatted, u.GetName()); err != nil {
			return err
		}

		return stack.HasCondition(live, "Ready", "True")
	}))
	must(t, n.Backup(ctx, s.source, squatted))

	return live
}

// testSquatting restores the MR to another namespace with the setting for copies, while another
// tenant's MR has its external-name. The original is gone, so the restored MR is not a copy.
func (s *suite) testSquatting(t *testing.T, original *unstructured.Unstructured) {
	ctx := t.Context()
	must(t, drill.Platform{Crossplane: s.version, Namespace: squatter}.Make(ctx, s.target, 0))
	squat := &unstructured.Unstructured{Object: map[string]any{"spec": original.Object["spec"]}}
	squat.SetGroupVersionKind(original.GroupVersionKind())
	squat.SetNamespace(squatter)
	squat.SetName(squatter + "-bucket")
	squat.SetAnnotations(map[string]string{externalName: original.GetAnnotations()[externalName], annotationPaused: "true"})
	must(t, s.target.ApplyObjects(ctx, squat))
	before, err := s.cloud.Journal(ctx, 0)
	must(t, err)
	seq := before[len(before)-1].Seq
	n := drill.Platform{Crossplane: s.version, Namespace: squatted}
	must(t, n.StartRestore(ctx, s.target, moved, squatted, "--namespace-mappings", squatted+":"+moved, "--annotations", annotationClone+"=new",
		"--item-operation-timeout", "1s"))
	r, err := drill.AwaitRestore(ctx, s.target, moved)
	must(t, err)
	copied, err := get(ctx, s.target, original.GroupVersionKind(), moved, original.GetName())
	must(t, err)
	if got, want := copied.GetAnnotations()[externalName], original.GetAnnotations()[externalName]; got != want {
		t.Errorf("the MR came back with the external-name %q and not %q", got, want)
	}
	if !drill.Held(copied) || !paused(copied) {
		t.Errorf("Restore %s is %s, and the MR is not held until a user decides whose the external resource is: %v", moved, drill.Phase(r), copied.GetAnnotations())
	}
	changes, err := s.cloud.Journal(ctx, seq, api.Create, api.Delete)
	must(t, err)
	for _, e := range changes {
		t.Errorf("in the cloud: %+v", e)
	}
}
