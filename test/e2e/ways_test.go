package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// clusterResources must be set explicitly in a backup of everything. Without any filter Velero
// v1.18.3 filters by scope: it leaves out VolumeSnapshotContents, and then takes that for a filter
// that leaves out all cluster-scoped objects that are not requested.
const clusterResources = "--include-cluster-resources"

// few is enough where the number of instances makes no difference.
const few = 3

// patience is how long a reaction may take on a busy machine.
const patience = 2 * time.Minute

// A way is one way to back up and restore a namespace, with arguments to the velero command.
type way struct {
	reason    string
	namespace string
	size      int
	// first is true to back up before any other namespace has instances.
	first bool
	// last is true to create the instances after the backup of everything, so that it lacks them.
	last bool
	// alone is true to back up without the plugin.
	alone bool
	// scheduled is true to create a schedule with the arguments first, and then a backup from it.
	scheduled bool
	backup    []string
	// warns is a part of the backup's warning about each instance.
	warns   string
	restore []string
	// to is the namespace that is restored into; "" for the same one.
	to string
	// held is true if the claims are held until a restore with the arguments again brings the XRs.
	held  bool
	again []string

	tenant *tenant
}

// testWays backs up in every way, loses the cluster, and restores all of it in another one. The
// restores run at the same time.
func testWays(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	ways := waysOf(version)
	whole := s.fill(t, ways)
	control := s.fillControl(t)
	rebuilt, parted := s.makeRebuilt(t), s.fillSplit(t)
	for _, w := range ways {
		if !w.first && !w.last && !w.alone {
			s.backUpWay(t, w)
		}
	}
	s.backUp(t, s.source, control.reverse)
	s.backUpSplit(t, parted)
	s.remember(t, s.source, whole)
	backupWith(t, s.source, "whole", clusterResources+"=true")
	var damaged *damagedTenants
	if version == stack.V2 {
		damaged = s.fillDamaged(t)
	}
	for _, w := range ways {
		if w.last {
			w.tenant = s.few(t, s.source, drill.Platform{Namespace: w.namespace}, w.size)
			s.backUpWay(t, w)
		}
	}
	if damaged != nil {
		s.backUpDamaged(t, damaged)
	}
	must(t, s.source.UsePlugin(t.Context(), false))
	s.backUpWaysAlone(t, ways)
	s.backUp(t, s.source, control.alone)
	s.backUpSplitAlone(t, parted)
	network := ""
	if version == stack.V2 {
		network = s.makeTwice(t)
		backupWith(t, s.source, twice, "--include-namespaces", twice)
	}

	tenants := []*tenant{whole, control.alone, control.reverse, parted.narrowed, parted.sifted, parted.alone}
	if damaged != nil {
		tenants = append(tenants, damaged.with, damaged.alone)
	}
	for _, w := range ways {
		tenants = append(tenants, w.tenant)
	}
	s.loseSource(t, tenants...)
	t.Run("RestoredWithoutThePlugin", func(t *testing.T) {
		s.testRestoredWithoutPlugin(t, control, damaged, func() {
			t.Run("Split", func(t *testing.T) { s.testSplitAlone(t, parted) })
			t.Run("Tuned", func(t *testing.T) { s.testTunedAlone(t, rebuilt, whole.Namespace) })
			if network != "" {
				t.Run("Twice", func(t *testing.T) { s.testTwiceAlone(t, network) })
			}
		})
	})
	if damaged != nil {
		t.Run("Damaged", func(t *testing.T) { s.testDamaged(t, damaged) })
	}
	s.startWays(t, ways)
	for name, w := range ways {
		t.Run(name, func(t *testing.T) {
			if w.held {
				s.testHeld(t, w)
			} else {
				s.testWay(t, w)
			}
		})
	}
	t.Run("Split", func(t *testing.T) { s.testSplit(t, parted) })
	if network != "" {
		t.Run("MovedBack", func(t *testing.T) { s.testMovedBack(t, ways["Moved"]) })
	}
	t.Run("WholeCluster", func(t *testing.T) { s.testWholeCluster(t, whole, rebuilt) })
	t.Run("SplitWhole", func(t *testing.T) { s.testSplitWhole(t, parted) })
	must(t, s.target.Destroy())
	t.Run("EmptyCluster", func(t *testing.T) { s.testEmptyCluster(t, whole) })
}

func waysOf(version stack.Version) map[string]*way {
	const namespaces, cluster = "--include-namespaces", clusterResources
	ways := map[string]*way{
		"ClusterResources": {
			reason:    "With all cluster-scoped objects the tree is found in more than one way.",
			namespace: "scoped", size: few, first: true, backup: []string{namespaces, "scoped", cluster + "=true"}, restore: []string{cluster + "=true"},
		},
		"Selector": {
			reason:    "Only the instances have the label, and all that belongs to them must be included.",
			namespace: "selected", size: count, backup: []string{"--selector", "pick=selected"}, restore: []string{"--selector", "pick=selected"},
		},
		"Unfiltered": {
			reason:    "A backup of all namespaces includes all that belongs to them.",
			namespace: "plain", size: few, restore: []string{namespaces, "plain"},
		},
		"Schedule": {
			reason:    "A scheduled backup is like any other.",
			namespace: "scheduled", size: few, scheduled: true, backup: []string{namespaces, "scheduled"},
		},
		"Moved": {
			reason:    "Every reference points into the other namespace.",
			namespace: "moved", size: few, last: true, backup: []string{namespaces, "moved"}, restore: []string{"--namespace-mappings", "moved:elsewhere"}, to: "elsewhere",
		},
		"NoClusterResourcesRestored": {
			reason:    "A restore without cluster-scoped objects works if the platform exists, but lacks the XR of a claim.",
			namespace: "narrow", size: few, backup: []string{namespaces, "narrow"}, restore: []string{cluster + "=false"},
			held: version == stack.V1, again: []string{namespaces, "narrow"},
		},
		"BeforeThePlugin": {
			reason:    "A backup from before the plugin was installed is restored as far as possible.",
			namespace: "early", size: count, alone: true, backup: []string{namespaces, "early"},
			held: version == stack.V1,
		},
	}
	if version == stack.V1 {
		ways["NoClusterResourcesBackedUp"] = &way{
			reason:    "A backup without cluster-scoped objects has the claims only, and warns of that.",
			namespace: "bare", size: few, backup: []string{namespaces, "bare", cluster + "=false"}, warns: cluster + "=false", held: true,
		}
		ways["WholeClusterBeforeThePlugin"] = &way{
			reason:    "A backup of everything has the tree, even without a record of it.",
			namespace: "sooner", size: few, alone: true, backup: []string{cluster + "=true"}, restore: []string{namespaces, "sooner"},
		}
	}
	for _, w := range ways {
		if w.to == "" {
			w.to = w.namespace
		}
	}

	return ways
}

// fill creates the instances of all ways, and those for the backup of the whole cluster.
func (s *suite) fill(t *testing.T, ways map[string]*way) *tenant {
	t.Helper()
	for _, w := range ways {
		if w.first {
			w.tenant = s.few(t, s.source, drill.Platform{Namespace: w.namespace}, w.size)
			s.remember(t, s.source, w.tenant)
			backupWith(t, s.source, w.namespace, w.backup...)
		}
	}
	for _, w := range ways {
		if !w.first && !w.last {
			w.tenant = s.few(t, s.source, drill.Platform{Namespace: w.namespace}, w.size)
		}
	}

	return s.few(t, s.source, drill.Platform{Namespace: "whole"}, count)
}

func (s *suite) backUpWay(t *testing.T, w *way) {
	t.Helper()
	if slices.Contains(w.backup, "--selector") {
		s.label(t, w.tenant, "pick", w.namespace)
	}
	s.remember(t, s.source, w.tenant)
	args := w.backup
	if w.scheduled {
		_, err := s.source.Velero(t.Context(), append([]string{"schedule", "create", w.namespace, "--schedule", "0 0 1 1 *"}, w.backup...)...)
		must(t, err)
		args = []string{"--from-schedule", w.namespace}
	}
	b := backupWith(t, s.source, w.namespace, args...)
	if w.warns == "" {
		return
	}
	logs, err := s.source.Velero(t.Context(), "backup", "logs", w.namespace)
	must(t, err)
	if linesWith(problems(logs), w.warns) < w.size || warnings(b) < int64(w.size) {
		t.Errorf("%s The Backup has %d warnings:\n%s", w.reason, warnings(b), problems(logs))
	}
}

func (s *suite) backUpWaysAlone(t *testing.T, ways map[string]*way) {
	t.Helper()
	for _, w := range ways {
		if w.alone {
			s.remember(t, s.source, w.tenant)
			backupWith(t, s.source, w.namespace, w.backup...)
		}
	}
}

// label puts a label on the instances. On v1 Crossplane puts it on their XRs too.
func (s *suite) label(t *testing.T, n *tenant, key, value string) {
	t.Helper()
	ctx := t.Context()
	must(t, n.AwaitReady(ctx, s.source, n.size))
	instances, err := n.Instances(ctx, s.source)
	must(t, err)
	for _, u := range instances {
		must(t, drill.Patch(ctx, s.source, &u, map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}}))
	}
	must(t, s.source.Wait(ctx, time.Minute, "the label", func(ctx context.Context) error {
		xrs, err := n.Composites(ctx, s.source)
		if err != nil {
			return err
		}
		for _, u := range xrs {
			if u.GetLabels()[key] != value {
				return fmt.Errorf("XR %s does not have it", u.GetName())
			}
		}

		return nil
	}))
}

func (s *suite) startWays(t *testing.T, ways map[string]*way) {
	t.Helper()
	for _, w := range ways {
		s.start(t, w.tenant, w.namespace, w.restore...)
	}
	var back []*tenant
	for _, w := range ways {
		r, err := drill.AwaitRestore(t.Context(), s.target, w.namespace)
		must(t, err)
		t.Logf("Restore %s is %s", w.namespace, drill.Phase(r))
		if !w.held && drill.Phase(r) == "Completed" {
			back = append(back, w.restored())
		}
	}
	s.settleAll(t, back...)
}

// settleAll is settle for several tenants at the same time.
func (s *suite) settleAll(t *testing.T, tenants ...*tenant) {
	t.Helper()
	ctx := t.Context()
	for _, n := range tenants {
		if err := n.AwaitReady(ctx, s.target, n.size); err != nil {
			t.Error(err)
		}
	}
	for _, n := range tenants {
		now, err := n.Record(ctx, s.target, s.cloud)
		must(t, err)
		must(t, n.AwaitReads(ctx, s.target, s.cloud, now, now.Seq))
	}
}

// restored returns the tenant that is expected after the restore.
func (w *way) restored() *tenant {
	n := *w.tenant
	n.Prefix, n.Namespace = w.namespace, w.to
	n.wishes = renamespaced(n.wishes, w.namespace, w.to)

	return &n
}

// testWay checks that all came back sound, and that nothing is left of the plugin's own.
func (s *suite) testWay(t *testing.T, w *way) {
	n := w.restored()
	s.awaitCompleted(t, w.namespace)
	s.wantSound(t, n)
	s.wantNothingLeft(t, n)
	if t.Failed() {
		t.Log(w.reason)
	}
}

// testHeld checks that claims without their XRs are held and named, and that nothing is created. A
// restore that brings the XRs adopts all.
func (s *suite) testHeld(t *testing.T, w *way) {
	ctx, n := t.Context(), w.tenant
	s.wantPhase(t, w.namespace, "PartiallyFailed")
	got, err := n.Compare(ctx, s.target, s.cloud, n.before)
	must(t, err)
	if got.Creates+got.Deletes+got.Duplicates > 0 || got.Holds != w.size {
		t.Errorf("%s The claims must be held and nothing created: %+v", w.reason, got)
	}
	details := s.details(t, w.namespace)
	claims, err := n.Instances(ctx, s.target)
	must(t, err)
	for _, u := range claims {
		xr, _, _ := unstructured.NestedString(u.Object, "spec", "resourceRef", "name")
		if !paused(&u) || !drill.Held(&u) || xr == "" {
			t.Errorf("claim %s is not held: %v, XR %q", u.GetName(), u.GetAnnotations(), xr)
		}
		wantMessage(t, "the details of the restore", details, n.Namespace+"/"+u.GetName(), xr, "was not restored")
	}
	xrs, err := n.Composites(ctx, s.target)
	must(t, err)
	if len(claims) != w.size || len(xrs) != 0 {
		t.Errorf("there are %d claims and %d XRs", len(claims), len(xrs))
	}
	if w.again == nil {
		return
	}
	s.restore(t, n, w.namespace+"-again", w.again...)
	s.settle(t, n)
	s.wantSound(t, n)
	s.wantNothingLeft(t, n)
}

// testWholeCluster restores everything into a cluster in which other namespaces are back already.
func (s *suite) testWholeCluster(t *testing.T, n *tenant, rebuilt *rebuilt) {
	s.restore(t, n, n.Namespace)
	s.settle(t, n)
	s.wantSound(t, n)
	s.wantNothingLeft(t, n)
	t.Run("Rebuilt", func(t *testing.T) { s.testRebuilt(t, rebuilt, n.Namespace) })
}

// wantNothingLeft checks that restored objects have no annotation that the plugin causes.
func (s *suite) wantNothingLeft(t *testing.T, n *tenant) {
	t.Helper()
	objects, err := n.Objects(t.Context(), s.target)
	must(t, err)
	for _, kind := range []string{"Composition", "CompositionRevision", "CompositeResourceDefinition"} {
		shared, err := list(t.Context(), s.target, schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: kind}, "", "")
		must(t, err)
		objects = append(objects, shared...)
	}
	for _, u := range objects {
		for key := range u.GetAnnotations() {
			if strings.HasPrefix(key, "velero.crossplane.io/") || strings.HasPrefix(key, "backup.velero.io/") || key == "velero.io/restore-status" {
				t.Errorf("%s %s still has the annotation %s", u.GetKind(), u.GetName(), key)
			}
		}
	}
}
