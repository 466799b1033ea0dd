//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// leaving are MRs that a user deletes: asynchronous, synchronous, and on the plugin framework.
var leaving = []string{"gateway", "network", "record"}

func TestMatrixUpjetDeletesV1(t *testing.T) { testUpjetDeletes(t, stack.V1, "v1.20") }

func TestMatrixUpjetDeletesV2(t *testing.T) { testUpjetDeletes(t, stack.V2, "v2") }

// testUpjetDeletes loses a cluster while the cloud deletes the external resources of some MRs, and
// deletes another one of the backup too. All are gone when the MRs are restored.
func testUpjetDeletes(t *testing.T, version stack.Version, dir string) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	single := filepath.Join("testdata", dir, "upjet", "single")
	alone := &shape{reason: "After a restore by Velero alone, upjet creates again what is gone.", Scene: drill.Scene{Name: "alone", Dir: single}}
	with := &shape{
		reason: "An MR that was being deleted must not come back, and an external resource that is gone must not be created again.",
		Scene:  drill.Scene{Name: "leaving", Dir: single, RestoreArgs: []string{"--item-operation-timeout", "90s"}},
	}
	if version.IsV1() {
		alone.BackupArgs, with.BackupArgs = selected(alone.Name), selected(with.Name)
	}
	s := newUpjet(t, version)
	s.source = s.upjet(t, "source", nil)
	for _, n := range []*shape{alone, with} {
		must(t, n.Make(ctx, s.source))
		must(t, n.AwaitReady(ctx, s.source))
		s.leave(t, n)
	}
	must(t, s.source.RestartVelero(ctx))
	must(t, alone.BackUp(ctx, s.source))
	must(t, s.source.UsePlugin(ctx, true))
	must(t, with.BackUp(ctx, s.source))
	must(t, s.source.Destroy())
	must(t, s.cloud.Release(ctx))
	for _, n := range []*shape{alone, with} {
		s.lose(t, n, "Bucket "+n.Name+"-bucket")
	}

	s.target = s.upjet(t, "target", nil)
	must(t, s.target.RestartVelero(ctx))
	t.Run("VeleroAlone", func(t *testing.T) {
		must(t, alone.StartRestore(t.Context(), s.target))
		s.awaitCompleted(t, alone.Name)
		s.eventually(t, "upjet to create again what is gone", func(ctx context.Context) error {
			changes, err := alone.Changes(ctx, s.cloud, alone.ledger.Seq, alone.ledger.External)
			if err != nil {
				return err
			}
			if got, want := makers(changes), []string{"alone-bucket", "alone-cluster", "alone-nameless"}; !slices.Equal(got, want) {
				return fmt.Errorf("it created %v again, not %v", got, want)
			}

			return nil
		})
	})
	must(t, s.target.UsePlugin(ctx, true))
	must(t, with.StartRestore(ctx, s.target))
	t.Run("Restored", func(t *testing.T) { s.testLeft(t, with) })
}

// leave deletes MRs of a scene until the cloud has accepted the calls, which it does not execute.
func (s *suite) leave(t *testing.T, n *shape) {
	t.Helper()
	ctx := t.Context()
	must(t, s.cloud.Fail(ctx, api.Fault{Op: api.Delete, By: n.Name + "-", Linger: true, Times: always}))
	client, err := dynamic.NewForConfig(s.source.REST())
	must(t, err)
	mrs, err := s.upjets(ctx, s.source, n)
	must(t, err)
	for _, u := range mrs {
		if slices.Contains(leaving, strings.TrimPrefix(u.GetName(), n.Name+"-")) {
			gvr := u.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(u.GetKind()) + "s")
			must(t, client.Resource(gvr).Namespace(u.GetNamespace()).Delete(ctx, u.GetName(), metav1.DeleteOptions{}))
		}
	}
	must(t, s.source.Wait(ctx, patience, "the deletes of "+n.Name, func(ctx context.Context) error {
		entries, err := s.cloud.Journal(ctx, 0, api.Delete)
		if err != nil {
			return err
		}
		asked := map[string]bool{}
		for _, e := range entries {
			asked[e.ManagedBy[strings.LastIndex(e.ManagedBy, " ")+1:]] = true
		}
		for _, u := range mrs {
			if slices.Contains(leaving, strings.TrimPrefix(u.GetName(), n.Name+"-")) && !asked[string(u.GetUID())] {
				return fmt.Errorf("%s was not", u.GetName())
			}
		}

		return nil
	}))
}

// lose deletes an external resource of a scene, and records the remaining ones.
func (s *suite) lose(t *testing.T, n *shape, external string) {
	t.Helper()
	kind, id, _ := strings.Cut(external, " ")
	must(t, s.cloud.Delete(t.Context(), api.Kind(kind), id))
	var err error
	n.ledger, err = n.Ledger(t.Context(), s.cloud)
	must(t, err)
}

// testLeft expects the MRs that were being deleted to be absent, the one whose external resource is
// gone to be held and named, and the rest to be unchanged.
func (s *suite) testLeft(t *testing.T, n *shape) {
	ctx := t.Context()
	r, err := drill.AwaitRestore(ctx, s.target, n.Name)
	must(t, err)
	if phase := drill.Phase(r); phase != "PartiallyFailed" {
		t.Errorf("%s The restore is %s", n.reason, phase)
	}
	wantMessage(t, "the details of the restore", s.details(t, n.Name), n.Name+"-bucket", "only observes", "does not exist", "managementPolicies")
	now, err := n.Ledger(ctx, s.cloud)
	must(t, err)
	s.eventually(t, "upjet to read each MR once more", func(ctx context.Context) error { return s.readSince(ctx, n, now.Seq) })
	mrs, err := s.upjets(ctx, s.target, n)
	must(t, err)
	var wrong []error
	for _, u := range mrs {
		name := strings.TrimPrefix(u.GetName(), n.Name+"-")
		if slices.Contains(leaving, name) {
			wrong = append(wrong, fmt.Errorf("%s is back", u.GetName()))
		}
		if gone := name == "bucket"; gone != drill.Held(&u) || !gone && stack.HasCondition(&u, "Ready", "True") != nil {
			wrong = append(wrong, fmt.Errorf("%s has the policies %v, annotations %v", u.GetName(), policies(&u), u.GetAnnotations()))
		}
	}
	if err := errors.Join(wrong...); err != nil || len(mrs) != 7 {
		t.Errorf("%s There are %d MRs, not 7\n%v", n.reason, len(mrs), err)
	}
	changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
	must(t, err)
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
}
