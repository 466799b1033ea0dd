//go:build matrix

package e2e

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// Scenes of namespaced XRs whose XRD is being deleted in the target. Crossplane does not delete
// such XRs, and the XRD waits until a user has.
const (
	aloneLingering = "alone-lingering"
	lingering      = "lingering"
)

func TestMatrixLingeringV20(t *testing.T) { testLingering(t, stack.V20) }

func TestMatrixLingeringV2(t *testing.T) { testLingering(t, stack.V2) }

func TestMatrixLingeringV24(t *testing.T) { testLingering(t, stack.V24) }

// testLingering restores XRs onto an XRD that is being deleted, and that waits for an existing XR.
func testLingering(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	s := newStage(t, version)
	scene := drill.Scene{Dir: "definitions", Count: few, Size: 2 * few}
	scenes := map[string]*shape{
		aloneLingering: {reason: "Velero alone restores XRs that keep their XRD from being deleted.", Scene: scene},
		lingering:      {reason: "Nothing is written onto an XRD that is being deleted, though Crossplane would not delete it.", Scene: scene},
	}
	s.fillScenes(t, "v2", scenes, func(name string) bool { return name == aloneLingering })

	s.target = s.bare(t, "target")
	for name, n := range scenes {
		s.installFunction(t, s.target, name, true)
		must(t, n.Install(ctx, s.target, ""))
		must(t, s.target.ApplyObjects(ctx, s.keeper(name)))
		xrd := s.definitionOf(name)
		s.delete(t, xrd, metav1.DeletePropagationBackground)
		s.eventually(t, name+" to have the status of a terminating XRD", func(ctx context.Context) error {
			u, err := get(ctx, s.target, xrd.GroupVersionKind(), "", xrd.GetName())
			if err != nil {
				return stack.Never(err)
			}
			if stack.HasCondition(u, "Established", "False") != nil || u.GetDeletionTimestamp() == nil {
				return fmt.Errorf("its status is %v", u.Object["status"])
			}

			return nil
		})
	}
	must(t, s.target.RestartVelero(ctx))
	t.Run("VeleroAlone", func(t *testing.T) { s.testLingeringAlone(t, scenes[aloneLingering]) })
	must(t, s.target.UsePlugin(ctx, true))
	t.Run("Dying", func(t *testing.T) { s.testDying(t, scenes[lingering]) })
	s.delete(t, s.keeper(lingering), metav1.DeletePropagationBackground)
	t.Run("DyingGone", func(t *testing.T) { s.testDyingGone(t, scenes[lingering]) })
	now, err := s.cloud.Journal(ctx, 0)
	must(t, err)
	t.Run("Settled", func(t *testing.T) { s.testSettled(t, scenes[lingering], now[len(now)-1].Seq) })
}

// testLingeringAlone is the control: the XRs live on, and keep their XRD from being deleted.
func (s *suite) testLingeringAlone(t *testing.T, n *shape) {
	ctx := t.Context()
	must(t, n.StartRestore(ctx, s.target))
	s.awaitEnd(t, n.Name)
	s.delete(t, s.keeper(n.Name), metav1.DeletePropagationBackground)
	must(t, drill.Patch(ctx, s.target, s.keeper(n.Name), map[string]any{"metadata": map[string]any{"finalizers": nil, "annotations": nil}}))
	s.awaitGone(t, s.keeper(n.Name))
	s.look(t, n.Name, "restored")
	since := s.after(metav1.Now().Time, silence)
	s.eventually(t, "the XRD to wait for the XRs", func(ctx context.Context) error {
		if _, err := get(ctx, s.target, s.definitionOf(n.Name).GroupVersionKind(), "", s.definitionOf(n.Name).GetName()); err != nil {
			return stack.Never(err)
		}
		for _, u := range s.orders(t, n, few) {
			if u.GetDeletionTimestamp() != nil {
				return stack.Never(fmt.Errorf("%s is being deleted", u.GetName()))
			}
			if err := stack.HasCondition(&u, "Synced", "True"); err != nil {
				return err
			}
		}

		return since(ctx)
	})
	for _, op := range []api.Op{api.Create, api.Delete} {
		if err := s.changed(ctx, n, op, api.Bucket, 1); err == nil {
			t.Errorf("in the cloud there was a %s", op)
		}
	}
}
