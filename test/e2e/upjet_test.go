package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// TestUpjetV2 loses a cluster with MRs that upjet reconciles, and the provider's memory of them.
func TestUpjetV2(t *testing.T) {
	t.Parallel()
	alone, with := upjetScenes("v2")
	testUpjet(t, newUpjet(t, stack.V2), alone, with)
}

// testUpjet restores scenes with Velero alone and with the plugin, in a cluster that has only the
// platform. Upjet does not find the last scene.
func testUpjet(t *testing.T, s *suite, alone, with []*shape) {
	t.Helper()
	ctx := t.Context()

	s.source = s.upjet(t, "source", with)
	for _, n := range slices.Concat(alone, with) {
		must(t, n.Make(ctx, s.source))
	}
	must(t, s.source.RestartVelero(ctx))
	for _, n := range alone {
		s.storeUpjet(t, n)
	}
	must(t, s.source.UsePlugin(ctx, true))
	for _, n := range with {
		s.storeUpjet(t, n)
	}
	must(t, s.source.Destroy())

	s.target = s.upjet(t, "target", with)
	must(t, s.target.RestartVelero(ctx))
	t.Run("VeleroAlone", func(t *testing.T) {
		s.testUpjetAlone(t, alone[0], "cluster", "nameless")
		s.testUpjetAlone(t, alone[1], "registry")
	})
	must(t, s.target.UsePlugin(ctx, true))
	for _, n := range with {
		must(t, n.StartRestore(ctx, s.target))
	}
	for _, n := range with[:2] {
		t.Run(n.Name, func(t *testing.T) { s.testUpjetRestored(t, n) })
	}
	t.Run(with[2].Name, func(t *testing.T) { s.testUpjetHeld(t, with[2]) })
}

// upjetScenes returns the scenes for Velero alone, and those for the plugin.
func upjetScenes(version string) (alone, with []*shape) {
	dir := filepath.Join("testdata", version, "upjet")
	single, fleet, misread := filepath.Join(dir, "single"), filepath.Join(dir, "fleet"), filepath.Join(dir, "misread")

	alone = []*shape{
		{reason: "After a restore by Velero alone, upjet creates again what it finds by its status, or has no external-name.", Scene: drill.Scene{Name: bare, Dir: single}},
		{reason: "After a restore by Velero alone, upjet creates again what it reads under the wrong ID.", Scene: drill.Scene{Name: "again", Dir: misread}},
	}
	with = []*shape{
		{reason: "Upjet's MRs must be unchanged.", Scene: drill.Scene{Name: "single", Dir: single}},
		{reason: "XRs of upjet's MRs must be unchanged.", Scene: drill.Scene{Name: "fleet", Dir: fleet, Count: 3}},
		{
			reason: "An external resource that upjet reads under the wrong ID must not be created again.",
			Scene:  drill.Scene{Name: "unfound", Dir: misread, RestoreArgs: []string{"--item-operation-timeout", "30s"}},
		},
	}

	return alone, with
}

func upjetKinds() []string {
	return []string{"Bucket", "Network", "Gateway", "Database", "Folder", "Topic", "Subnet", "Record", "Cluster", "Registry"}
}

// upjetGroup returns the group of upjet's kinds.
func (s *suite) upjetGroup() string {
	if s.version.IsV1() {
		return "upjet.example.org"
	}

	return "upjet.m.example.org"
}

func newUpjet(t *testing.T, version stack.Version) *suite {
	t.Helper()
	ctx := t.Context()
	set, err := build.Ensure(ctx, os.Stderr, stack.Programs(stack.Options{Crossplane: version, Plugin: true, UpjetProvider: true})...)
	must(t, err)
	host, err := stack.NewHost(ctx, set, "", os.Stderr)
	must(t, err)
	t.Cleanup(func() { must(t, host.Close()) })

	return &suite{host: host, cloud: api.NewClient(host.CloudURL()), version: version}
}

// upjet starts a cluster, with Velero alone, that has the platform of each scene.
func (s *suite) upjet(t *testing.T, name string, scenes []*shape) *stack.Cluster {
	t.Helper()
	c, err := stack.NewCluster(t.Context(), s.host, stack.Options{Name: name, Crossplane: s.version, UpjetProvider: true, VeleroArgs: oftener})
	must(t, err)
	for _, n := range scenes {
		must(t, n.Install(t.Context(), c, ""))
	}

	return c
}

// storeUpjet waits until a scene is Ready, remembers it, and backs it up.
func (s *suite) storeUpjet(t *testing.T, n *shape) {
	t.Helper()
	ctx := t.Context()
	must(t, n.AwaitReady(ctx, s.source))
	var err error
	n.picture, err = n.Picture(ctx, s.source)
	must(t, err)
	n.ledger, err = n.Ledger(ctx, s.cloud)
	must(t, err)
	must(t, n.BackUp(ctx, s.source))
}

// testUpjetAlone expects a second external resource for the MRs that upjet can't find after a
// restore by Velero alone, and for no other.
func (s *suite) testUpjetAlone(t *testing.T, n *shape, mrs ...string) {
	t.Helper()
	must(t, n.StartRestore(t.Context(), s.target))
	s.awaitCompleted(t, n.Name)
	s.eventually(t, "upjet to create again what it can't find", func(ctx context.Context) error {
		changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
		if err != nil {
			return err
		}
		var want []string
		for _, mr := range mrs {
			want = append(want, n.Name+"-"+mr)
		}
		if got := makers(changes); !slices.Equal(got, want) {
			return fmt.Errorf("it created %v again, not %v", got, want)
		}

		return s.readSince(ctx, n, n.ledger.Seq)
	})
}

// makers returns the names of the MRs for which an external resource was created.
func makers(changes []api.Entry) []string {
	var names []string
	for _, e := range changes {
		if parts := strings.Split(e.ManagedBy, ", "); e.Op == api.Create && len(parts) == 4 {
			names = append(names, parts[2][strings.LastIndex(parts[2], "/")+1:])
		}
	}
	slices.Sort(names)

	return slices.Compact(names)
}

// testUpjetRestored expects a scene to be unchanged, without creates or deletes in the cloud.
func (s *suite) testUpjetRestored(t *testing.T, n *shape) {
	ctx := t.Context()
	s.awaitCompleted(t, n.Name)
	must(t, n.AwaitReady(ctx, s.target))
	now, err := n.Ledger(ctx, s.cloud)
	must(t, err)
	s.eventually(t, "upjet to read each MR once more", func(ctx context.Context) error { return s.readSince(ctx, n, now.Seq) })

	changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
	must(t, err)
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
	after, err := n.Picture(ctx, s.target)
	must(t, err)
	wantSame(t, n, withNames(n), after)
	if t.Failed() {
		t.Log(drill.Problems(ctx, s.target, n.Name))
	}
}

// withNames returns the scene before the loss, with an external-name for the database that had
// none: the one that only its status names.
func withNames(n *shape) drill.Picture {
	named := map[string]bool{}
	for _, l := range n.picture {
		named["Database "+l.Annotations[externalName]] = true
	}
	want := maps.Clone(n.picture)
	for name, l := range want {
		if !strings.HasSuffix(name, "-nameless") {
			continue
		}
		l.Annotations = maps.Clone(l.Annotations)
		for external := range n.ledger.External {
			if id, ok := strings.CutPrefix(external, "Database "); ok && !named[external] {
				l.Annotations[externalName] = id
			}
		}
		want[name] = l
	}

	return want
}

// testUpjetHeld expects an MR whose external resource upjet does not find to be held and named, and
// nothing to be created for it.
func (s *suite) testUpjetHeld(t *testing.T, n *shape) {
	ctx := t.Context()
	r, err := drill.AwaitRestore(ctx, s.target, n.Name)
	must(t, err)
	if phase := drill.Phase(r); phase != "PartiallyFailed" {
		t.Errorf("%s The restore is %s", n.reason, phase)
	}
	wantMessage(t, "the details of the restore", s.details(t, n.Name), n.Name+"-registry", "only observes", "does not exist", "managementPolicies")
	changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
	must(t, err)
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
}

// readSince returns an error unless the provider has read the external resource of each MR of a
// scene since the entry of the cloud's journal.
func (s *suite) readSince(ctx context.Context, n *shape, since int64) error {
	entries, err := s.cloud.Journal(ctx, since, api.Read)
	if err != nil {
		return err
	}
	read := map[string]bool{}
	for _, e := range entries {
		read[e.ManagedBy[strings.LastIndex(e.ManagedBy, " ")+1:]] = true
	}
	mrs, err := s.upjets(ctx, s.target, n)
	if err != nil {
		return err
	}
	var missing []error
	for _, u := range mrs {
		if !read[string(u.GetUID())] {
			missing = append(missing, fmt.Errorf("%s %s was not", u.GetKind(), u.GetName()))
		}
	}

	return errors.Join(missing...)
}

// upjets returns the MRs of a scene in a cluster.
func (s *suite) upjets(ctx context.Context, c *stack.Cluster, n *shape) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, kind := range upjetKinds() {
		mrs, err := list(ctx, c, schema.GroupVersionKind{Group: s.upjetGroup(), Version: "v1beta1", Kind: kind}, n.Name, "")
		if err != nil {
			return nil, err
		}
		all = append(all, mrs...)
	}

	return slices.DeleteFunc(all, func(u unstructured.Unstructured) bool { return !strings.HasPrefix(u.GetName(), n.Name+"-") }), nil
}
