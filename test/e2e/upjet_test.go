package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// TestUpjetV2 loses a cluster with MRs that upjet reconciles. What the provider remembers of them, beside what is in the objects, is lost with it.
func TestUpjetV2(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	scenes := upjetScenes()
	s := newUpjet(t, stack.V2)

	s.source = s.upjet(t, "source", scenes)
	for _, n := range scenes {
		must(t, n.Make(ctx, s.source))
	}
	must(t, s.source.RestartVelero(ctx))
	for _, n := range scenes {
		if n.Name != bare {
			must(t, s.source.UsePlugin(ctx, true))
		}
		s.storeUpjet(t, n)
	}
	must(t, s.source.Destroy())

	s.target = s.upjet(t, "target", scenes)
	must(t, s.target.RestartVelero(ctx))
	t.Run("VeleroAlone", func(t *testing.T) { s.testUpjetAlone(t, scenes[0]) })
	must(t, s.target.UsePlugin(ctx, true))
	for _, n := range scenes[1:] {
		must(t, n.StartRestore(ctx, s.target))
	}
	for _, n := range scenes[1:] {
		t.Run(n.Name, func(t *testing.T) { s.testUpjetRestored(t, n) })
	}
}

// upjetScenes are the scenes, the one that the plugin knows nothing of first.
func upjetScenes() []*shape {
	dir := filepath.Join("testdata", "v2", "upjet")

	return []*shape{
		{reason: "Velero alone has upjet make anew what it can't find.", Scene: drill.Scene{Name: bare, Dir: filepath.Join(dir, "single")}},
		{reason: "MRs of upjet's must be what they were.", Scene: drill.Scene{Name: "single", Dir: filepath.Join(dir, "single")}},
		{reason: "XRs of upjet's MRs must be what they were.", Scene: drill.Scene{Name: "fleet", Dir: filepath.Join(dir, "fleet"), Count: 3}},
	}
}

func upjetKinds() []string {
	return []string{"Bucket", "Network", "Gateway", "Database", "Folder", "Topic", "Subnet", "Record", "Cluster"}
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

// testUpjetAlone wants a second external resource for each MR that upjet can't find by what Velero brings back, and for no other.
func (s *suite) testUpjetAlone(t *testing.T, n *shape) {
	must(t, n.StartRestore(t.Context(), s.target))
	s.awaitCompleted(t, n.Name)
	want := []string{n.Name + "-cluster", n.Name + "-nameless"}
	s.eventually(t, "upjet to make anew what it can't find", func(ctx context.Context) error {
		changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
		if err != nil {
			return err
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
			_, name, _ := strings.Cut(parts[2], "/")
			names = append(names, name)
		}
	}
	slices.Sort(names)

	return slices.Compact(names)
}

// testUpjetRestored wants a scene to be what it was, and nothing in the cloud to have been made or deleted for it.
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
	wantSame(t, n, n.picture, after)
	if t.Failed() {
		t.Log(drill.Problems(ctx, s.target, n.Name))
	}
}

// readSince returns an error unless the provider has read what each MR of a scene stands for since the entry of the cloud's journal.
func (s *suite) readSince(ctx context.Context, n *shape, since int64) error {
	entries, err := s.cloud.Journal(ctx, since, api.Read)
	if err != nil {
		return err
	}
	read := map[string]bool{}
	for _, e := range entries {
		read[e.ManagedBy[strings.LastIndex(e.ManagedBy, " ")+1:]] = true
	}
	var missing []error
	for _, kind := range upjetKinds() {
		mrs, err := list(ctx, s.target, schema.GroupVersionKind{Group: "upjet.m.example.org", Version: "v1beta1", Kind: kind}, n.Name, "")
		if err != nil {
			return err
		}
		for _, u := range mrs {
			if !read[string(u.GetUID())] {
				missing = append(missing, fmt.Errorf("%s %s was not", kind, u.GetName()))
			}
		}
	}

	return errors.Join(missing...)
}
