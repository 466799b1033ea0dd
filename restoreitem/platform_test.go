package restoreitem

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestAdoptMovesNoLiveXR(t *testing.T) {
	composing := xptest.XR("theirs", xptest.Refs(xptest.MR("b")))
	composition := xptest.Composition(xptest.CompositionName, composing)
	type want struct {
		Left bool
		// Named reports whether the note names XRs and the code.
		Named bool
	}
	left := want{Left: true, Named: true}
	runAdopts(t, map[string]adoptCase[want]{
		"Composing": {
			reason: "Crossplane would delete what the Composition of the backup does not compose.", item: composition, live: live(composing), restore: restoreWith(teamA()),
			want: left,
		},
		"Waiting":  {reason: "An XR that has composed nothing waits for the Composition.", item: composition, live: live(xptest.With(composing, xptest.Refs())), restore: restoreWith(teamA())},
		"Held":     {reason: "An XR that a restore holds is no other's.", item: composition, live: live(heldWith(composing)), restore: restoreWith(teamA())},
		"OfOther":  {reason: "It names another Composition.", item: composition, live: live(xptest.With(composing, xptest.Field("o", "spec", "compositionRef", "name"))), restore: restoreWith(teamA())},
		"Live":     {reason: "Velero leaves a live Composition.", item: composition, live: live(composing, composition), restore: restoreWith(teamA())},
		"All":      {reason: "A user who restores everything asks for all Compositions.", item: composition, live: live(composing)},
		"NoAnswer": {reason: "Without an answer it is unknown whether XRs run on it.", item: composition, live: failingCluster(errAPI), restore: restoreWith(teamA()), err: errAPI},
	}, func(_ *testing.T, out adopted) want {
		return want{Left: out.SkipRestore, Named: strings.Contains(out.note, "XOrder ") && strings.Contains(out.note, "[CompositionLeftOut]")}
	})
}

func TestAdoptLabelsNothingForOthers(t *testing.T) {
	environment := xptest.Object("apiextensions.crossplane.io/v1beta1", "EnvironmentConfig", "", "prod", xptest.Labelled("region", "eu"))
	composed := xptest.With(environment, xptest.ControlledBy(xptest.XR("x")))
	runAdopts(t, map[string]adoptCase[bool]{
		"OfNamespaces": {reason: "A function of a live XR could select it.", item: environment, restore: restoreWith(teamA()), want: true},
		"All":          {reason: "A restore of everything brings it as it was.", item: environment},
		"Composed":     {reason: "Crossplane finds what an XR composes by its labels.", item: composed, live: live(xptest.XR("x", xptest.Refs(composed))), restore: restoreWith(teamA())},
	}, func(t *testing.T, out adopted) bool {
		t.Helper()
		removed := out.object != nil && len(out.object.GetLabels()) == 0
		if removed != strings.Contains(out.note, "[LabelsLeftOut]") || out.object != nil && !removed && !cmp.Equal(out.item.GetLabels(), out.object.GetLabels()) {
			t.Errorf("got %v, note %q, error %v", out.object, out.note, out.err)
		}

		return removed
	})
}

// With --existing-resource-policy=update Velero would write what the backup has over what all
// namespaces share.
func TestAdoptKeepsWhatIsShared(t *testing.T) {
	x := xptest.XR("x")
	composition := xptest.Composition(xptest.CompositionName, x)
	for _, item := range []*unstructured.Unstructured{
		composition,
		xptest.Revision("r", x, xptest.Field(int64(1), "spec", "revision")),
		xptest.XRD("xorders.example.org"),
		xptest.Object("apiextensions.crossplane.io/v1beta1", "EnvironmentConfig", "", "prod", xptest.Labelled("region", "eu")),
		xptest.Object("cloud.example.org/v1beta1", "ProviderConfig", "", "default"),
		xptest.Object("cloud.m.example.org/v1beta1", "ClusterProviderConfig", "", "default"),
		xptest.Object("apiextensions.crossplane.io/v1beta1", "Usage", "", "u", xptest.JSON(`{"spec":{"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket"}}}`)),
		xptest.Object("protection.crossplane.io/v1beta1", "ClusterUsage", "", "u", xptest.JSON(`{"spec":{"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket"}}}`)),
		xptest.Object("pkg.crossplane.io/v1", "Provider", "", "cloud"),
	} {
		restore := updating()
		restore.Spec.IncludedNamespaces = teamA().IncludedNamespaces
		if out := adopt(t, live(item, composition), item, restore); out.err != nil || !out.SkipRestore || !strings.Contains(out.note, "[KeptAsLive]") {
			t.Errorf("%s must stay as it is: %+v", xp.String(item), out)
		}
	}
}

func TestAdoptProtectsNothingOfOthers(t *testing.T) {
	usage := func(of string) *unstructured.Unstructured {
		return xptest.Object("protection.crossplane.io/v1beta1", "Usage", "team-a", "u", xptest.JSON(`{"spec":{"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"LocalBucket",`+
			of+`},"by":{"apiVersion":"cloud.example.org/v1alpha1","kind":"LocalBucket","resourceRef":{"name":"mine"}}}}`))
	}
	named, selected := usage(`"resourceRef":{"name":"b","namespace":"team-b"}`), usage(`"resourceSelector":{"matchLabels":{"a":"b"},"namespace":"team-b"}`)
	x := xptest.XR("x", xptest.Refs(named))
	runAdopts(t, map[string]adoptCase[bool]{
		"Named":    {reason: "Team-b could not delete its object any more.", item: named, restore: restoreWith(teamA()), want: true},
		"Selected": {reason: "Crossplane could select another of team-b than before.", item: selected, restore: restoreWith(teamA()), want: true},
		"Own":      {reason: "What it protects is in its namespace.", item: usage(`"resourceRef":{"name":"b"}`), restore: restoreWith(teamA())},
		"All":      {reason: "What it protects is restored too.", item: named},
		"Composed": {reason: "Crossplane would compose it again.", item: xptest.With(named, xptest.ControlledBy(x)), live: live(x), restore: restoreWith(teamA())},
	}, func(t *testing.T, out adopted) bool {
		t.Helper()
		if out.SkipRestore != strings.Contains(out.note, "[OutsideNamespace]") {
			t.Errorf("got %+v", out)
		}

		return out.SkipRestore
	})
}

func TestAdoptNumbersRevisions(t *testing.T) {
	began := metav1.NewTime(time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC))
	composition := xptest.Composition(xptest.CompositionName, xptest.XR("x"), xptest.UID("live"))
	of := func(restore string, created time.Time) *unstructured.Unstructured {
		u := xptest.With(composition, xptest.Labelled("velero.io/backup-name", "nightly"), xptest.Labelled(xp.LabelRestore, restore))
		u.SetCreationTimestamp(metav1.NewTime(created))

		return u
	}
	restored := of("again", began.Time)
	numbered := func(n any) *unstructured.Unstructured {
		return xptest.Revision("r", xptest.XR("x"), xptest.ControlledBy(composition), xptest.Field(n, "spec", "revision"))
	}
	restore := restoreOf(nil)
	restore.Name, restore.Spec.BackupName, restore.CreationTimestamp = "again", "nightly", began
	runAdopts(t, map[string]adoptCase[any]{
		"WithItsComposition": {reason: "Crossplane creates another revision 1 of the Composition.", restore: restore, live: live(restored), item: numbered(int64(1)), want: int64(2)},
		"TooHigh":            {reason: "Twice this number overflows.", restore: restore, live: live(restored), item: numbered(int64(math.MaxInt64)), want: int64(math.MaxInt64)},
		"Later":              {reason: "Restored revisions keep their order.", restore: restore, live: live(restored), item: numbered(int64(7)), want: int64(14)},
		"CompositionLive":    {reason: "Live XRs follow the revisions of a live Composition.", restore: restore, live: live(composition), item: numbered(int64(7)), want: int64(-7)},
		"RestoredBefore": {
			reason:  "XRs that the first restore of the backup brought are live now, and the Composition has new revisions.",
			restore: restore, live: live(of("first", began.Time)), item: numbered(int64(7)), want: int64(-7),
		},
		"RestoredBeforeByTheSameName": {
			reason:  "The name of a Restore that is deleted can be used again.",
			restore: restore, live: live(of("again", began.Add(-time.Second))), item: numbered(int64(7)), want: int64(-7),
		},
		"WithoutComposition": {
			reason:  "When a user applies the Composition later, Crossplane takes control of the revision, and live XRs would follow it.",
			restore: restore, live: live(), item: numbered(int64(7)), want: int64(-7),
		},
		"OfNone": {reason: "Its Composition was not live in the backup.", restore: restore, live: live(restored), item: xptest.With(numbered(int64(7)), xptest.Without("metadata", "ownerReferences")), want: int64(-7)},
		"Labelled": {
			reason: "Crossplane finds the Composition by a label.", restore: restore, live: live(restored),
			item: xptest.With(numbered(int64(7)), xptest.Labelled(xp.LabelCompositionName, "other")), want: int64(-7),
		},
		"Zero":       {reason: "If its content comes back, Crossplane takes 0 for the newest, and tries to create it again for ever.", restore: restore, live: live(composition), item: numbered(int64(0)), want: int64(-1)},
		"ZeroOfOwn":  {reason: "No number is between 0 and the first.", restore: restore, live: live(restored), item: numbered(int64(0)), want: int64(-1)},
		"Negative":   {reason: "No XR followed it in the backup.", restore: restore, live: live(restored), item: numbered(int64(-3)), want: int64(-3)},
		"Unreadable": {reason: "With an unreadable number it is unknown which XRs would follow the revision.", restore: restore, live: live(), item: numbered("1"), err: errAny},
		"NoNumber":   {reason: "The API server refuses a revision without a number.", item: xptest.With(numbered(int64(1)), xptest.Without("spec", "revision"))},
		"NoAnswer":   {reason: "Without an answer it is unknown whether XRs would follow the revision.", restore: restore, live: failingCluster(errAPI), item: numbered(int64(1)), err: errAny},
	}, func(_ *testing.T, out adopted) any {
		got, _, _ := unstructured.NestedFieldNoCopy(out.object.Object, "spec", "revision")
		if !cmp.Equal(out.item.GetLabels(), out.object.GetLabels()) {
			return "XRs select revisions by label"
		}

		return got
	})
}

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
