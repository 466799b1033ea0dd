package restoreitem

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// labelHash is the label in which Crossplane keeps the hash of a revision's content.
const labelHash = "crossplane.io/composition-hash"

// A composing cluster has a Composition and its revisions, and does with them what Crossplane does.
type composing struct {
	composition *unstructured.Unstructured
	// content is the hash of what the Composition is now, labels those that it has.
	content   string
	labels    map[string]string
	revisions map[string]*unstructured.Unstructured
	// order are the names of the revisions in an order in which they are listed.
	order []string
}

func (c *composing) add(r *unstructured.Unstructured) {
	if _, ok := c.revisions[r.GetName()]; !ok { // Velero leaves what exists.
		c.revisions[r.GetName()] = r
		c.order = append(c.order, r.GetName())
	}
}

func numberOf(r *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(r.Object, "spec", "revision")

	return n
}

// latest is LatestRevision of crossplane apis/apiextensions/v1, after the list with the labels.
func (c *composing) latest(selector map[string]string) *unstructured.Unstructured {
	var latest *unstructured.Unstructured
	highest := int64(0)
	for _, name := range c.order {
		r := c.revisions[name]
		if !labels.SelectorFromSet(selector).Matches(labels.Set(r.GetLabels())) || !metav1.IsControlledBy(r, c.composition) {
			continue
		}
		if n := numberOf(r); highest < n {
			latest, highest = r, n
		}
	}

	return latest
}

// reconcile is Reconcile of crossplane internal/controller/apiextensions/composition. It reports
// whether it would run again, because it failed or changed a revision.
func (c *composing) reconcile() (again bool) {
	var latest, existing int64
	if r := c.latest(nil); r != nil {
		latest = numberOf(r)
	}
	for _, name := range c.order {
		r := c.revisions[name]
		if !metav1.IsControlledBy(r, c.composition) {
			xptest.ControlledBy(c.composition)(r)
			again = true
		}
		if r.GetLabels()[labelHash] != c.content {
			continue
		}
		existing = numberOf(r)
		if existing == latest {
			continue
		}
		xptest.Field(latest+1, "spec", "revision")(r)
		again = true
	}
	if existing > 0 {
		return again
	}
	name := "orders-" + c.content
	if _, exists := c.revisions[name]; exists {
		return true // AlreadyExists: it fails, and is tried again.
	}
	c.add(revisionOf(c.composition, c.content, latest+1, c.labels))

	return true
}

func revisionOf(composition *unstructured.Unstructured, content string, number int64, of map[string]string) *unstructured.Unstructured {
	options := []xptest.Option{xptest.ControlledBy(composition), xptest.Labelled(labelHash, content), xptest.Field(number, "spec", "revision")}
	for name, value := range of {
		options = append(options, xptest.Labelled(name, value))
	}

	return xptest.Revision("orders-"+content, xptest.XR("x"), options...)
}

// settle runs the controller until it has nothing more to do.
func (c *composing) settle(t *testing.T) {
	t.Helper()
	for range 20 {
		if !c.reconcile() {
			return
		}
	}
	t.Fatal("Crossplane does not come to an end with the revisions")
}

// selectors are those of all XRs: of none, of each channel, and of one that has no revision.
func selectors() []map[string]string {
	return []map[string]string{nil, {"channel": "stable"}, {"channel": "dev"}, {"channel": "none"}, {"channel": "stable", "tier": "gold"}, {xp.LabelRestore: "again"}}
}

// choices returns the revision that Crossplane chooses for an XR with each of the selectors.
func (c *composing) choices() []string {
	var names []string
	for _, s := range selectors() {
		name := "none"
		if r := c.latest(s); r != nil {
			name = r.GetName()
		}
		names = append(names, name)
	}

	return names
}

func randomLabels(r *rand.Rand) map[string]string {
	all := map[string]string{"channel": []string{"stable", "dev"}[r.IntN(2)]}
	if r.IntN(3) == 0 {
		all["tier"] = "gold"
	}

	return all
}

// TestRestoredRevisionsChangeNoChoice restores any revisions beside any others. Crossplane chooses
// for each XR as before, whatever its selector, at any moment. If the Composition returns to what a
// restored one has, that becomes the newest.
func TestRestoredRevisionsChangeNoChoice(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 48)) //nolint:gosec // The same numbers each time.
		composition := xptest.Composition(xptest.CompositionName, xptest.XR("x"), xptest.UID("live"))
		if r.IntN(2) == 0 { // An earlier restore has brought it, perhaps of the same backup.
			xptest.Labelled(xp.LabelRestore, "first")(composition)
			xptest.Labelled("velero.io/backup-name", "nightly")(composition)
		}
		target := &composing{composition: composition, revisions: map[string]*unstructured.Unstructured{}}
		for range 1 + r.IntN(4) {
			target.content, target.labels = fmt.Sprintf("t%d", r.IntN(4)), randomLabels(r)
			target.settle(t)
		}
		before := target.choices()
		backedUp := xptest.Composition(xptest.CompositionName, xptest.XR("x"), xptest.UID("lost"))
		restored := ""
		for n := range 1 + r.IntN(5) {
			content := fmt.Sprintf("b%d", n)
			if r.IntN(4) == 0 {
				content = fmt.Sprintf("t%d", r.IntN(6)) // The target has it, or can return to it.
			}
			numbers := []int64{int64(1 + r.IntN(12)), -3, 0}
			of := revisionOf(backedUp, content, numbers[max(0, r.IntN(8)-5)], randomLabels(r))
			out := adopt(t, live(composition), of, restoreNamed("again"))
			if out.err != nil {
				t.Fatal(out.err)
			}
			back := out.object
			xptest.Labelled(xp.LabelRestore, "again")(back)
			if content == target.content {
				continue // It is live.
			}
			target.add(back)
			restored = content
			for range 1 + r.IntN(3) {
				if diff := cmp.Diff(before, target.choices()); diff != "" {
					t.Fatalf("seed %d: an XR follows another revision. -before, +after:\n%s", seed, diff)
				}
				target.reconcile()
			}
		}
		target.settle(t)
		if diff := cmp.Diff(before, target.choices()); diff != "" {
			t.Fatalf("seed %d: an XR follows another revision. -before, +after:\n%s", seed, diff)
		}
		if restored == "" {
			continue
		}
		target.content = restored
		target.settle(t)
		if newest := target.latest(nil); newest == nil || newest.GetName() != "orders-"+restored {
			t.Fatalf("seed %d: the Composition returned to %s, and the newest is %v", seed, restored, newest)
		}
	}
}

func restoreNamed(name string) *velerov1.Restore {
	restore := restoreOf(nil)
	restore.Name, restore.Spec.BackupName = name, "nightly"

	return restore
}
