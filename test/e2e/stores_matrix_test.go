//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// The claims and XRs of these scenes publish with an External Secret Store.
const (
	aloneStored = "alone-stored"
	stored      = "stored"
	storedNear  = "near-stored"
)

// ownerUID is the label with the UID of the object that published in a Secret with a store.
const ownerUID = "secret.crossplane.io/owner-uid"

var storeConfigKind = schema.GroupVersionKind{Group: "secrets.crossplane.io", Version: "v1alpha1", Kind: "StoreConfig"}

func storeScenes() map[string]*shape {
	scene := func(name string, restore ...string) drill.Scene {
		return drill.Scene{
			Dir: "stores", Count: 2, Size: 14, Store: name + "-store", BackupArgs: []string{"--include-namespaces", name}, RestoreArgs: restore,
		}
	}

	return map[string]*shape{
		aloneStored: {
			reason: "After a restore by Velero alone, no owner may publish in its own Secret.", target: "target.yaml", last: addStored,
			Scene: scene(aloneStored, "--include-cluster-resources=true", "--exclude-resources", "shops."+aloneStored+".example.org"),
		},
		stored: {
			reason: "A restore brings the StoreConfig and the Secrets, in which their owners publish again.", last: addStored, check: wantStored,
			Scene: scene(stored, "--include-cluster-resources=true"),
		},
		storedNear: {
			reason: "A restore of a namespace includes the Secrets that its trees published in another.", target: "target.yaml", last: addStored, check: wantStored,
			Scene: scene(storedNear, "--include-namespaces", storedNear),
		},
	}
}

// TestMatrixSecretStoresV1 covers External Secret Stores, an alpha feature of Crossplane v1.
func TestMatrixSecretStoresV1(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStage(t, stack.V1)
	scenes := storeScenes()
	names := slices.Sorted(maps.Keys(scenes))

	s.source = s.storing(t, "source")
	for _, name := range names {
		n := scenes[name]
		n.Name, n.Dir = name, filepath.Join("testdata", "v1.20", n.Dir)
		must(t, n.Install(ctx, s.source, "source.yaml"))
		must(t, n.Make(ctx, s.source))
	}
	must(t, s.source.UsePlugin(ctx, true))
	must(t, s.source.RestartVelero(ctx))
	for _, name := range names {
		s.store(t, scenes[name])
	}
	must(t, s.source.Destroy())

	s.target = s.storing(t, "target")
	for _, name := range names {
		must(t, scenes[name].Install(ctx, s.target, scenes[name].target))
	}
	must(t, s.target.RestartVelero(ctx))
	t.Run("VeleroAlone", func(t *testing.T) { s.testStoredAlone(t, scenes[aloneStored]) })
	must(t, s.target.UsePlugin(ctx, true))
	for _, name := range []string{stored, storedNear} {
		must(t, scenes[name].StartRestore(ctx, s.target))
	}
	for _, name := range []string{stored, storedNear} {
		t.Run("Restored/"+name, func(t *testing.T) { s.testRestored(t, scenes[name]) })
	}
	now, err := s.cloud.Journal(ctx, 0)
	must(t, err)
	for _, name := range []string{stored, storedNear} {
		t.Run("Settled/"+name, func(t *testing.T) { s.testSettled(t, scenes[name], now[len(now)-1].Seq) })
	}
	for _, name := range names {
		if _, err := get(ctx, s.target, storeConfigKind, "", name); err != nil {
			t.Errorf("A StoreConfig did not come back: %v", err)
		}
	}
}

// storing starts a cluster, with Velero alone, whose Crossplane has External Secret Stores.
func (s *suite) storing(t *testing.T, name string) *stack.Cluster {
	t.Helper()
	c, err := stack.NewCluster(t.Context(), s.host, stack.Options{
		Name: name, Crossplane: s.version, VeleroArgs: oftener, CrossplaneArgs: []string{"--enable-external-secret-stores"},
	})
	must(t, err)

	return c
}

// storedIn returns the Secrets that a scene has published with a store.
func storedIn(ctx context.Context, c *stack.Cluster, n drill.Scene) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, namespace := range []string{n.Name, n.Store} {
		secrets, err := list(ctx, c, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, namespace, "")
		if err != nil {
			return nil, err
		}
		for _, u := range secrets {
			if u.GetLabels()[ownerUID] != "" {
				all = append(all, u)
			}
		}
	}
	if len(all) != 2*n.Count {
		return nil, fmt.Errorf("scene %s has published in %v, not in a Secret for each claim and XR", n.Name, names(all))
	}

	return all, nil
}

// addStored adds to each Secret that the scene has published with a store a key that is published
// only once, like a password that a function generates.
func addStored(ctx context.Context, c *stack.Cluster, n drill.Scene) error {
	secrets, err := storedIn(ctx, c, n)
	for _, u := range secrets {
		err = errors.Join(err, drill.Patch(ctx, c, &u, map[string]any{"data": map[string]any{"root": "b25seSBhdCBjcmVhdGlvbg=="}}))
	}

	return err
}

// wantStored expects a scene to be unchanged, except for the managers of its Secrets: two have
// written their data, and nothing records which of them is the owner.
func wantStored(t *testing.T, s *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
	without := func(p drill.Picture) drill.Picture {
		p = maps.Clone(p)
		for name, l := range p {
			if l.Labels[ownerUID] != "" {
				l.Managers = nil
				p[name] = l
			}
		}

		return p
	}
	wantSame(t, n, without(n.picture), without(after))
	if _, err := storedIn(t.Context(), s.target, n.Scene); err != nil {
		t.Error(err)
	}
}

// testStoredAlone is the control: without this loss the other tests prove nothing. The plugin makes
// the backup, so that it has the whole tree. XRs come back before their claims. Otherwise
// Crossplane would create other XRs, which publish under other names.
func (s *suite) testStoredAlone(t *testing.T, n *shape) {
	ctx := t.Context()
	must(t, n.StartRestore(ctx, s.target))
	s.awaitEnd(t, n.Name)
	s.awaitAll(t, n, "XShop", "existing secret is not owned by UID")
	must(t, drill.Platform{}.StartRestore(ctx, s.target, n.Name+"-again", n.Name, "--include-cluster-resources=true"))
	s.awaitEnd(t, n.Name+"-again")
	s.awaitAll(t, n, "Shop", "Claim is waiting for composite resource to become Ready")
	if r := command(t, s.target, "validate", "-o", "json"); strings.Count(r.stdout, "label "+ownerUID+" to ") < n.Count {
		t.Errorf("validate does not name the cure for the Secrets: %+v", r)
	}
}

// awaitAll waits until the status of each object of a kind names the cause.
func (s *suite) awaitAll(t *testing.T, n *shape, kind, why string) {
	t.Helper()
	s.eventually(t, "each "+kind+" that Velero alone has restored to have the status "+why, func(ctx context.Context) error {
		all, err := list(ctx, s.target, schema.GroupVersionKind{Group: n.Name + ".example.org", Version: "v1alpha1", Kind: kind}, n.Name, "")
		if err != nil {
			return err
		}
		for _, u := range all {
			if status := fmt.Sprint(u.Object["status"]); !strings.Contains(status, why) {
				return fmt.Errorf("%s has the status %s", u.GetName(), status)
			}
		}
		if len(all) != n.Count {
			return fmt.Errorf("there are %v", names(all))
		}

		return nil
	})
}
