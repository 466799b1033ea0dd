package restoreitem

import (
	"strings"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Velero does not count plugin warnings in a restore. So messages for the user are operations.
func TestAdoptNotes(t *testing.T) {
	created := func(day int) xptest.Option {
		return func(u *unstructured.Unstructured) {
			u.SetCreationTimestamp(metav1.NewTime(time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)))
		}
	}
	xr := xptest.XR("x", xptest.UID("old"), created(1))
	mr := xptest.MR("b", xptest.ControlledBy(xr), created(2))
	atWork := xptest.XR("x", xptest.UID("new"), xptest.Refs(), xptest.Synced("True", "ReconcileSuccess", ""))
	restored := func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{xp.LabelRestore: "sunday"}) }
	free := xptest.NamespacedMR("b", xptest.Annotated(xp.AnnotationExternalName, "external"))
	job := func(name string) *unstructured.Unstructured { return xptest.Object("batch/v1", "Job", "team-a", name) }
	cases := map[string]struct {
		reason   string
		item     *unstructured.Unstructured
		live     *cluster
		settings map[string]string
		restore  *velerov1.Restore
		// reported are parts of the note, none if there is no note; failed means that the operation
		// fails.
		reported []string
		failed   bool
	}{
		"Dropped": {
			reason: "A composed resource that its XR does not list does not come back.", item: mr, live: live(xptest.With(atWork, created(5), restored)),
			reported: []string{"Bucket b: It is not restored, because its XR x exists and does not list it", "[NotListed]"},
		},
		"Recreated": {
			reason: "Another writer created the XR again, so the MR in the backup is lost.", item: mr, live: live(xptest.With(atWork, created(5))),
			reported: []string{"Bucket b: It is not restored, because its XR x was created in this cluster", "[ComposedTwice]"}, failed: true,
		},
		"OlderXR": {
			reason: "An XR from before the restore dropped the resource itself.", item: mr, live: live(xptest.With(atWork, created(1))), reported: []string{"[NotListed]"},
		},
		"WithoutOwner": {
			reason: "No controller may look after an MR without its owner.", item: mr, live: live(), reported: []string{"Bucket b: Restored without its owner XOrder x: ", "[RestoredWithoutOwner]"},
		},
		"Schedule": {
			reason: "A CronOperation stays paused until a user resumes it.", item: xptest.Object("ops.crossplane.io/v1alpha1", "CronOperation", "", "nightly"), live: live(),
			reported: []string{"CronOperation nightly: CronOperation nightly is restored paused", "release nightly [StartsOperations]"},
		},
		"Observed": {
			reason: "An MR that only observes differs from its backup.", item: xptest.With(free, policies(`["*"]`)), live: live(free), settings: set("observe"), restore: restoreOf(toCopy()),
			reported: []string{"Bucket copy/b: The copy only observes: Bucket team-a/b manages the same external resource"},
		},
		"Held": {reason: "The operation of a held copy reports more than a note.", item: free, live: live(free), settings: set("hold"), restore: restoreOf(toCopy())},
		"Adopted": {
			reason: "The operation of a held XR reports more than a note.", item: xptest.XR("x"), live: live(),
		},
		"Unrestored": {
			reason: "Velero restores no Event, and the backup has noted that it restores no completed Job.", live: live(),
			item:     xptest.XR("x", xptest.Refs(job("done"), job("runs"), xptest.Object("v1", "Event", "team-a", "e"), mr), xptest.UnresolvedRefs(job("done"), xptest.MR("b"))),
			reported: []string{"XOrder x: It composes Job team-a/done, Event team-a/e, which Velero does not restore", "[MadeAgain]"},
		},
		"AsItWas": {reason: "An MR that comes back unchanged needs no note.", item: xptest.MR("b"), live: live()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.live.config = tc.settings
			if tc.restore == nil {
				tc.restore = restoreOf(nil)
			}
			out := adopt(t, tc.live, tc.item, tc.restore)
			if out.err != nil {
				t.Fatal(out.err)
			}
			if (out.note != "") != (len(tc.reported) > 0) || out.failed != tc.failed {
				t.Errorf("%s\ngot %q, failed %t", tc.reason, out.note, out.failed)
			}
			for _, part := range tc.reported {
				if !strings.Contains(out.note, part) {
					t.Errorf("%s\n%q is not in %q", tc.reason, part, out.note)
				}
			}
		})
	}
}

// Thousands of live objects can be left as they are, so there is one note for each kind.
func TestAdoptNotesEachLiveKindOnce(t *testing.T) {
	log, _ := logtest.NewNullLogger()
	update := restoreOf(nil)
	update.Spec.ExistingResourcePolicy = velerov1.PolicyTypeUpdate
	a := NewAdopt(Crossplane(), live(xptest.MR("a"), xptest.MR("b"), xptest.Composition("c", xptest.XR("x"))), nil, log, Shared{})
	var got []string
	for _, item := range []*unstructured.Unstructured{xptest.MR("a"), xptest.MR("b"), xptest.Composition("c", xptest.XR("x"))} {
		out, err := a.Execute(inputFor(item, update))
		if err != nil || !out.SkipRestore {
			t.Fatalf("the restore must leave %s as it is: %v", xp.String(item), err)
		}
		if progress := (velero.OperationProgress{}); noteText(out.OperationID, &progress) {
			got = append(got, item.GetName())
		}
	}
	if want := "a c"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
