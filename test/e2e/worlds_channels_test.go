package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

var (
	compositionKind = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"}
	revisionKind    = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}
)

// worldsOfChannels returns worlds in which XRs select their revisions by labels.
func worldsOfChannels(version stack.Version) map[string]*shape {
	// Each XR composes two resources, and has a claim on v1.
	size := 3
	if version.IsV1() {
		size++
	}
	theirs := &bystanders{Scene: drill.Scene{Name: "bystander", Count: 3, Size: 3 * size}}
	channels := &shape{
		reason: "XRs of the target follow the revision of their channel that they followed before, and restored ones follow it once they are adopted.",
		Scene:  drill.Scene{Count: 2, Size: 2 * size, Drift: true},
		last:   reviseOften, before: theirs.make, check: theirs.wantUntouched,
	}
	if version.IsV1() {
		return map[string]*shape{"channels": channels}
	}

	return map[string]*shape{
		"channels": channels,
		"astray": {
			reason: "XRs whose revision is gone wait until the revision of their channel names all that they compose, whatever the newest of all names.",
			Scene: drill.Scene{
				Count: 2, Size: 6, Drift: true,
				RestoreArgs: []string{"--exclude-resources", "compositionrevisions.apiextensions.crossplane.io"},
			},
			target: "target.yaml", before: releaseDev, restoring: cureChannel, check: wantNothingLost,
		},
	}
}

// reviseOften makes numbers in the source that are higher than those of the target.
func reviseOften(ctx context.Context, c *stack.Cluster, n drill.Scene) error {
	const more = 4
	for i := range more {
		if err := revise(ctx, c, n.Name, strconv.Itoa(i)); err != nil {
			return err
		}
	}

	return n.AwaitReady(ctx, c)
}

// revise makes a new revision of a Composition, with the same spec, and waits until Crossplane
// controls all.
func revise(ctx context.Context, c *stack.Cluster, composition, to string) error {
	selector := "crossplane.io/composition-name=" + composition
	before, err := list(ctx, c, revisionKind, "", selector)
	if err != nil {
		return err
	}
	u, err := get(ctx, c, compositionKind, "", composition)
	if err != nil {
		return err
	}
	if err := drill.Patch(ctx, c, u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"example.org/revised": to}}}); err != nil {
		return fmt.Errorf("cannot revise Composition %s: %w", composition, err)
	}

	return c.Wait(ctx, time.Minute, "another revision of Composition "+composition, func(ctx context.Context) error {
		all, err := list(ctx, c, revisionKind, "", selector)
		if err != nil {
			return err
		}
		for _, r := range all {
			if len(r.GetOwnerReferences()) == 0 {
				return fmt.Errorf("%s has no owner", r.GetName())
			}
		}
		if len(all) <= len(before) {
			return fmt.Errorf("it has %d revisions, as before", len(all))
		}

		return nil
	})
}

// bystanders are XRs of another namespace of the target, which run on the same Composition.
type bystanders struct {
	drill.Scene
	picture drill.Picture
	ledger  *drill.Ledger
}

// make creates them on a channel, and then lets the Composition change its channel.
func (b *bystanders) make(t *testing.T, s *suite, n *shape) {
	t.Helper()
	ctx := t.Context()
	b.Dir = filepath.Join(n.Dir, "theirs")
	must(t, b.Install(ctx, s.target, ""))
	must(t, b.Make(ctx, s.target))
	must(t, b.AwaitReady(ctx, s.target))
	must(t, b.Change(ctx, s.target))
	must(t, b.AwaitReady(ctx, s.target))
	var err error
	b.picture, err = b.Picture(ctx, s.target)
	must(t, err)
	b.ledger, err = b.Ledger(ctx, s.cloud)
	must(t, err)
}

// wantUntouched expects the bystanders to be as they were, also when the Composition has another
// revision, and the restored XRs to follow the live channel.
func (b *bystanders) wantUntouched(t *testing.T, s *suite, n *shape, _ drill.Picture, changes []api.Entry) {
	t.Helper()
	ctx := t.Context()
	wantChanges(t, n, changes, map[string]int{"create Network": n.Count, "delete Database": n.Count})
	b.wantSame(t, s, n)
	all, err := n.Revisions(ctx, s.target)
	must(t, err)
	for name := range n.revisions {
		if r, ok := all[name]; ok {
			fields, _ := r.Fields.(map[string]any)
			if number, _, _ := unstructured.NestedInt64(fields, "spec", "revision"); number >= 0 {
				t.Errorf("%s\n%s has the number %d", n.reason, name, number)
			}
		}
	}
	must(t, revise(ctx, s.target, n.Name, "in-the-target"))
	b.wantSame(t, s, n)
}

// wantSame expects the bystanders to be as they were once every MR was reconciled again.
func (b *bystanders) wantSame(t *testing.T, s *suite, n *shape) {
	t.Helper()
	ctx := t.Context()
	now, err := s.cloud.Journal(ctx, 0)
	must(t, err)
	must(t, b.AwaitReads(ctx, s.target, s.cloud, now[len(now)-1].Seq))
	after, err := b.Picture(ctx, s.target)
	must(t, err)
	wantSame(t, n, b.picture, after)
	changes, err := b.Changes(ctx, s.cloud, b.ledger.Seq, b.ledger.External)
	must(t, err)
	wantChanges(t, n, changes, map[string]int{})
}

func wantChanges(t *testing.T, n *shape, changes []api.Entry, want map[string]int) {
	t.Helper()
	counts := map[string]int{}
	for _, c := range changes {
		counts[string(c.Op)+" "+string(c.Kind)]++
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("%s\nIn the cloud: -want, +got:\n%s", n.reason, diff)
	}
}

// releaseDev makes a revision of another channel the newest of the target.
func releaseDev(t *testing.T, s *suite, n *shape) {
	t.Helper()
	must(t, n.Change(t.Context(), s.target))
}

// cureChannel expects the XRs to wait for their channel, and gives it what they compose.
func cureChannel(t *testing.T, s *suite, n *shape) {
	t.Helper()
	s.eventually(t, "XRs that wait for their channel", func(ctx context.Context) error {
		xrs, err := list(ctx, s.target, schema.GroupVersionKind{Group: n.Name + ".example.org", Version: "v1alpha1", Kind: "Pipe"}, n.Name, "")
		if err != nil {
			return err
		}
		if len(xrs) != n.Count {
			return fmt.Errorf("there are %v", names(xrs))
		}
		for _, u := range xrs {
			if mark := u.GetAnnotations()[annotationHold]; !strings.Contains(mark, "[CompositionRevisionMissing]") {
				return fmt.Errorf("the mark of %s is %s", u.GetName(), mark)
			}
		}

		return nil
	})
	must(t, n.Cure(t.Context(), s.target))
}

// wantNothingLost expects all that was composed to be there, with the same external resources.
func wantNothingLost(t *testing.T, _ *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	wantChanges(t, n, changes, map[string]int{})
	for _, kind := range []string{"Bucket", "Network"} {
		wantSame(t, n, n.picture.Only(kind), after.Only(kind))
	}
}
