//go:build matrix

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// unreliableReads is a scene whose external resources the cloud shows, and then does not.
type unreliableReads struct {
	shape

	// again is true if the cloud shows them at every second request, not only at the first.
	again bool
	// own is true if its MRs are of the cloud's other provider.
	own bool
}

func TestMatrixUpjetFlickerV1(t *testing.T) { testFlicker(t, stack.V1, "v1.20") }

func TestMatrixUpjetFlickerV2(t *testing.T) { testFlicker(t, stack.V2, "v2") }

// testFlicker loses a cluster. The cloud shows each external resource once, then returns 404.
func testFlicker(t *testing.T, version stack.Version, dir string) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	dir = filepath.Join("testdata", dir)
	single, fleet, own := filepath.Join(dir, "upjet", "single"), filepath.Join(dir, "upjet", "fleet"), filepath.Join(dir, "standalone")
	lost := &unreliableReads{shape: shape{reason: "After a restore by Velero alone, upjet creates again what is hidden.", Scene: drill.Scene{Name: "lost", Dir: single}}}
	plain := &unreliableReads{own: true, shape: shape{reason: "A provider without upjet creates it again.", Scene: drill.Scene{Name: "plain", Dir: own}}}
	with := []*unreliableReads{
		{shape: shape{reason: "An external resource that was found once must not be created again.", Scene: drill.Scene{Name: "once", Dir: single}}},
		{again: true, shape: shape{reason: "Nor must one that comes and goes.", Scene: drill.Scene{Name: "turns", Dir: single}}},
		{shape: shape{reason: "Nor must that of a composed MR.", Scene: drill.Scene{Name: "shared", Dir: fleet, Count: 2}}},
		{own: true, shape: shape{reason: "Nor must that of an MR that is to be observed first.", Scene: drill.Scene{
			Name: "asked", Dir: own, RestoreArgs: []string{"--annotations", observeFirst},
		}}},
	}
	all := slices.Concat([]*unreliableReads{lost, plain}, with)
	s := newUnreliableReads(t, version)
	s.source = s.flickering(t, "source", with)
	for _, n := range all {
		if version.IsV1() && n.Count == 0 {
			n.BackupArgs = selected(n.Name)
		}
		must(t, n.Make(ctx, s.source))
	}
	must(t, s.source.RestartVelero(ctx))
	s.storeUpjet(t, &lost.shape)
	must(t, s.source.UsePlugin(ctx, true))
	for _, n := range all[1:] {
		s.storeUpjet(t, &n.shape)
	}
	must(t, s.source.Destroy())

	s.target = s.flickering(t, "target", with)
	must(t, s.target.RestartVelero(ctx))
	s.hide(t, lost)
	t.Run("VeleroAlone", func(t *testing.T) { s.testMadeHidden(t, lost, hideable()...) })
	must(t, s.target.UsePlugin(ctx, true))
	s.hide(t, plain)
	t.Run("NotObservedFirst", func(t *testing.T) { s.testMadeHidden(t, plain, "00") })
	for _, n := range with {
		s.hide(t, n)
		must(t, n.StartRestore(ctx, s.target))
	}
	t.Run("Hidden", func(t *testing.T) {
		for _, n := range with {
			t.Run(n.Name, func(t *testing.T) { s.testHidden(t, n) })
		}
	})
	must(t, s.cloud.Recover(ctx))
	for _, n := range with {
		t.Run(n.Name, func(t *testing.T) { s.testShown(t, n) })
	}
	// A limit: a released MR is its provider's, as before.
	s.refuse(t, &with[0].shape, http.StatusNotFound)
	t.Run("Later", func(t *testing.T) { s.wantRecreated(t, &with[0].shape, hideable()...) })
}

// hideable returns the MRs for which upjet creates another external resource when the cloud hides
// the existing one. The cloud knows the others by their names.
func hideable() []string { return []string{"database", "network", "record", "gateway", "cluster"} }

func newUnreliableReads(t *testing.T, version stack.Version) *suite {
	t.Helper()
	set, err := build.Ensure(t.Context(), os.Stderr, stack.Programs(stack.Options{Crossplane: version, Plugin: true, UpjetProvider: true})...)
	must(t, err)
	host, err := stack.NewHost(t.Context(), set, "", os.Stderr)
	must(t, err)
	t.Cleanup(func() { must(t, host.Close()) })

	return &suite{host: host, cloud: api.NewClient(host.CloudURL()), version: version}
}

// flickering starts a cluster, with Velero alone, that has the platform of each scene. The cloud's
// name for the resources of one kind of its own provider is known only after another observation.
func (s *suite) flickering(t *testing.T, name string, scenes []*unreliableReads) *stack.Cluster {
	t.Helper()
	c, err := stack.NewCluster(t.Context(), s.host, stack.Options{
		Name: name, Crossplane: s.version, UpjetProvider: true, VeleroArgs: oftener, ProviderArgs: []string{"--async", "Database." + s.groupOf("cloud")},
	})
	must(t, err)
	for _, n := range scenes {
		must(t, n.Install(t.Context(), c, ""))
	}

	return c
}

// groupOf returns the group of a provider's MRs.
func (s *suite) groupOf(provider string) string {
	if s.version.IsV1() {
		return provider + ".example.org"
	}

	return provider + ".m.example.org"
}

// hide makes the cloud show the external resources of a scene's MRs, and then hide them.
func (s *suite) hide(t *testing.T, n *unreliableReads) {
	t.Helper()
	must(t, s.cloud.Fail(t.Context(), api.Fault{Op: api.Read, By: n.Name + "-", Status: http.StatusNotFound, Times: always, After: 1, Again: n.again}))
}

// testMadeHidden is the control: at the next observation the provider creates what the cloud hides,
// unless the cloud knows it by its name.
func (s *suite) testMadeHidden(t *testing.T, n *unreliableReads, mrs ...string) {
	must(t, n.StartRestore(t.Context(), s.target))
	s.awaitCompleted(t, n.Name)
	s.wantRecreated(t, &n.shape, mrs...)
}

// wantRecreated waits until MRs of a scene have another external resource.
func (s *suite) wantRecreated(t *testing.T, n *shape, mrs ...string) {
	t.Helper()
	s.eventually(t, "the hidden external resources to be created again", func(ctx context.Context) error {
		changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
		if err != nil {
			return err
		}
		got := makers(changes)
		for _, mr := range mrs {
			if !slices.Contains(got, n.Name+"-"+mr) {
				return fmt.Errorf("it created %v again", got)
			}
		}

		return nil
	})
}

// testHidden waits until each MR of a scene was not found twice, and expects the provider to have
// tried nothing else, and the MRs to be held.
func (s *suite) testHidden(t *testing.T, n *unreliableReads) {
	if !n.own {
		s.testRefused(t, &n.shape, http.StatusNotFound)

		return
	}
	ctx := t.Context()
	s.eventually(t, "the cloud to hide each MR twice", func(ctx context.Context) error {
		reads, err := s.cloud.Journal(ctx, n.ledger.Seq, api.Read)
		if err != nil {
			return err
		}
		times := map[string]int{}
		for _, e := range reads {
			if e.Status == http.StatusNotFound && strings.Contains(e.ManagedBy, n.Name+"-") {
				times[string(e.Kind)]++
			}
		}
		if times["Bucket"] < 2 || times["Network"] < 2 || times["Database"] < 2 {
			return fmt.Errorf("it has %v", times)
		}

		return nil
	})
	changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
	must(t, err)
	if len(changes) > 0 {
		t.Errorf("%s In the cloud: %v", n.reason, changes)
	}
	mrs, err := s.plainOf(ctx, n)
	must(t, err)
	for _, u := range mrs {
		if !drill.Held(&u) || !slices.Equal(policies(&u), []any{"Observe"}) {
			t.Errorf("%s %s %s has the policies %v, annotations %v", n.reason, u.GetKind(), u.GetName(), policies(&u), u.GetAnnotations())
		}
	}
}

// testShown expects a scene to be unchanged when the cloud shows all again.
func (s *suite) testShown(t *testing.T, n *unreliableReads) {
	if !n.own {
		s.testUpjetRestored(t, &n.shape)

		return
	}
	ctx := t.Context()
	s.awaitCompleted(t, n.Name)
	must(t, n.AwaitReady(ctx, s.target))
	changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
	must(t, err)
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
	after, err := n.Picture(ctx, s.target)
	must(t, err)
	wantSame(t, &n.shape, n.picture, after)
}

// plainOf returns the MRs of a scene that are of the cloud's other provider.
func (s *suite) plainOf(ctx context.Context, n *unreliableReads) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, kind := range []string{"Bucket", "Network", "Database"} {
		mrs, err := list(ctx, s.target, schema.GroupVersionKind{Group: s.groupOf("cloud"), Version: "v1alpha1", Kind: kind}, n.Name, "")
		if err != nil {
			return nil, err
		}
		all = append(all, mrs...)
	}

	return slices.DeleteFunc(all, func(u unstructured.Unstructured) bool { return !strings.HasPrefix(u.GetName(), n.Name+"-") }), nil
}
