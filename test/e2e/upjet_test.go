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

// TestUpjetV2 loses a cluster with MRs that upjet reconciles. What the provider remembers of them,
// beside what is in the objects, is lost with it.
func TestUpjetV2(t *testing.T) {
	t.Parallel()
	alone, with := upjetScenes("v2")
	testUpjet(t, newUpjet(t, stack.V2), alone, with)
}

// testUpjet has Velero alone, and the plugin, restore what each is to, in a cluster that knows only
// the platform. The last of them upjet does not find.
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

// upjetScenes are those that the plugin knows nothing of, and those that it backs up and restores.
func upjetScenes(version string) (alone, with []*shape) {
	dir := filepath.Join("testdata", version, "upjet")
	single, fleet, misread := filepath.Join(dir, "single"), filepath.Join(dir, "fleet"), filepath.Join(dir, "misread")

	alone = []*shape{
		{reason: "Velero alone has upjet make anew what it finds by its status, or has no external-name.", Scene: drill.Scene{Name: bare, Dir: single}},
		{reason: "Velero alone has upjet make anew what it looks for under the wrong ID.", Scene: drill.Scene{Name: "again", Dir: misread}},
	}
	with = []*shape{
		{reason: "MRs of upjet's must be what they were.", Scene: drill.Scene{Name: "single", Dir: single}},
		{reason: "XRs of upjet's MRs must be what they were.", Scene: drill.Scene{Name: "fleet", Dir: fleet, Count: 3}},
		{
			reason: "What upjet looks for under the wrong ID must not be made anew.",
			Scene:  drill.Scene{Name: "unfound", Dir: misread, RestoreArgs: []string{"--item-operation-timeout", "30s"}},
		},
	}

	return alone, with
}

func upjetKinds() []string {
	return []string{"Bucket", "Network", "Gateway", "Database", "Folder", "Topic", "Subnet", "Record", "Cluster", "Registry"}
}

// upjetGroup is the group of the kinds that upjet made.
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

// testUpjetAlone wants a second external resource for the MRs that upjet can't find by what Velero
// brings back, and for no other.
func (s *suite) testUpjetAlone(t *testing.T, n *shape, mrs ...string) {
	t.Helper()
	must(t, n.StartRestore(t.Context(), s.target))
	s.awaitCompleted(t, n.Name)
	s.eventually(t, "upjet to make anew what it can't find", func(ctx context.Context) error {
		changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
		if err != nil {
			return err
		}
		var want []string
		for _, mr := range mrs {
			want = append(want, n.Name+"-"+mr)
		}
		if got := makers(changes); !slices.Equal(got, want) {
			return fmt.Errorf("it made %v anew, not %v", got, want)
		}

		return s.readSince(ctx, n, n.ledger.Seq)
	})
}

// makers are the names of the MRs for which something was made.
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

// testUpjetRestored wants a scene to be what it was, and nothing in the cloud to have been made or
// deleted for it.
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

// withNames is what a scene was, but for the external-name of the database that has none: it is
// that which only its status names.
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

// testUpjetHeld wants an MR whose external resource upjet does not find to be held and named, and
// nothing to be made for it.
func (s *suite) testUpjetHeld(t *testing.T, n *shape) {
	ctx := t.Context()
	r, err := drill.AwaitRestore(ctx, s.target, n.Name)
	must(t, err)
	if phase := drill.Phase(r); phase != "PartiallyFailed" {
		t.Errorf("%s The restore is %s", n.reason, phase)
	}
	wantTold(t, "the details of the restore", s.details(t, n.Name), n.Name+"-registry", "only observes", "does not exist", "managementPolicies")
	changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
	must(t, err)
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
}

// readSince returns an error unless the provider has read what each MR of a scene stands for since
// the entry of the cloud's journal.
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

// upjets are the MRs of a scene in a cluster.
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
