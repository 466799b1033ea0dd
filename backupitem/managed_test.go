package backupitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const (
	began = "2026-01-02T03:04:05Z"
	ended = "2026-01-02T03:04:06Z"
)

// unnamed returns an MR with an ID, "" for none, and without an external-name.
func unnamed(id string, o ...xptest.Option) *unstructured.Unstructured {
	mr := xptest.MR("b", append([]xptest.Option{xptest.Without("metadata", "annotations"), xptest.Annotated(xp.AnnotationCreateSucceeded, ended)}, o...)...)
	if id != "" {
		xptest.Field(id, "status", "atProvider", "id")(mr)
	}

	return mr
}

// named returns another MR, with both names.
func named(object, externalName, id string, o ...xptest.Option) *unstructured.Unstructured {
	return xptest.MR(object, append([]xptest.Option{
		xptest.Annotated(xp.AnnotationExternalName, externalName), xptest.Reconciled(), xptest.Field(id, "status", "atProvider", "id"),
	}, o...)...)
}

// fromID returns the setting with the kind.
func fromID(kinds string) map[string]string { return map[string]string{"external-name-from-id": kinds} }

// isNoted reports whether the stored copy of an MR records that it needs no name.
func isNoted(u *unstructured.Unstructured) bool {
	noted, _, _ := unstructured.NestedBool(u.Object, "metadata", xp.FieldUnnamed)

	return noted
}

func withoutName(kinds string) map[string]string {
	return map[string]string{"without-external-name": kinds}
}

// A warning names an MR whose external resource is unknown, and its stored copy has what is known
// for sure.
func TestTreeIdentifies(t *testing.T) {
	type want struct {
		// Name is the external-name of the stored copy, Warns are parts of the warnings, and Lists
		// is how often the kind is listed.
		Name  string
		Warns []string
		Lists int
		// Unnamed means that the stored copy records that it needs no name.
		Unnamed bool
	}
	const sure, unsure = "its stored copy has it from status.atProvider.id", "is not known"
	observes := xptest.JSON(`{"spec":{"managementPolicies":["Observe"]}}`)
	pending := xptest.Annotated(xp.AnnotationCreatePending, began)
	cases := map[string]struct {
		reason      string
		mr          *unstructured.Unstructured
		others      []*unstructured.Unstructured
		settings    map[string]string
		annotations map[string]string
		want        want
	}{
		"Named":    {reason: "Nothing is to be said.", mr: xptest.MR("b"), want: want{Name: "b"}},
		"Observed": {reason: "What its provider calls it is its own affair.", mr: named("b", "ours", "theirs"), want: want{Name: "ours"}},
		"UpjetFound": {
			reason: "Upjet has found it.", mr: xptest.MR("b", xptest.JSON(`{"spec":{"initProvider":{}},"status":{"atProvider":{"id":"b"}}}`)), want: want{Name: "b"},
		},
		"UpjetUnfound": {
			reason: "Upjet may still be creating it.", mr: xptest.MR("b", xptest.JSON(`{"spec":{"initProvider":{}}}`)),
			want: want{Name: "b", Warns: []string{"A restore of this backup lets it only observe"}},
		},
		"NeverCreated": {reason: "It never existed.", mr: unnamed("", xptest.Without("metadata", "annotations"), xptest.Annotated(xp.AnnotationCreateFailed, began)), want: want{}},
		"CreatePending": {
			reason: "Only the cloud knows.", mr: unnamed("", xptest.Without("metadata", "annotations"), pending), want: want{Warns: []string{"is being created"}},
		},
		"CreatePendingNamed": {
			reason: "A name that was written before says nothing.", mr: xptest.MR("b", pending), want: want{Name: "b", Warns: []string{"is being created"}},
		},
		"CreatePendingID": {
			reason: "An id of earlier neither.", want: want{Warns: []string{"is being created"}}, others: []*unstructured.Unstructured{named("o", "vpc-2", "vpc-2")},
			mr: unnamed("vpc-1", xptest.Annotated(xp.AnnotationCreateSucceeded, began), xptest.Annotated(xp.AnnotationCreatePending, ended)),
		},
		"Unknown":         {reason: "It may be made a second time.", mr: unnamed(""), want: want{Warns: []string{"nothing says which external resource"}}},
		"UnknownObserves": {reason: "It makes nothing.", mr: unnamed("", observes)},
		"PeersAgree": {
			reason: "All others have one name for both.", mr: unnamed("vpc-1"), others: []*unstructured.Unstructured{named("o", "vpc-2", "vpc-2"), named("p", "vpc-3", "vpc-3")},
			want: want{Name: "vpc-1", Warns: []string{sure}, Lists: 1},
		},
		"PeersObserve": {
			reason: "What only observes is found the better for it.", mr: unnamed("vpc-1", observes), others: []*unstructured.Unstructured{named("o", "vpc-2", "vpc-2")},
			want: want{Name: "vpc-1", Warns: []string{sure}, Lists: 1},
		},
		"PeerDiffers": {
			reason: "One that has two names is enough.", mr: unnamed("arn:1"), others: []*unstructured.Unstructured{named("o", "vpc-2", "vpc-2"), named("p", "p", "arn:2")},
			want: want{Warns: []string{unsure + ": Bucket p has another external-name than its id"}, Lists: 1},
		},
		"PeerDiffersUnsynced": {
			reason: "Also if its provider fails.", mr: unnamed("arn:1"), want: want{Warns: []string{unsure + ": Bucket p has another"}, Lists: 1},
			others: []*unstructured.Unstructured{named("o", "vpc-2", "vpc-2"), named("p", "p", "arn:2", xptest.Synced("False", "ReconcileError", ""))},
		},
		"PeerForged": {
			reason: "Anybody can write an external-name; with a wrong one the provider fails.", mr: unnamed("arn:1"),
			others: []*unstructured.Unstructured{named("o", "arn:2", "arn:2", xptest.Synced("False", "ReconcileError", ""))},
			want:   want{Warns: []string{unsure + ": no other of its kind"}, Lists: 1},
		},
		"PeerCreatePending": {
			reason: "What is in the making says nothing.", mr: unnamed("arn:1"), want: want{Warns: []string{unsure + ": no other of its kind"}, Lists: 1},
			others: []*unstructured.Unstructured{named("o", "arn:2", "arn:2", pending), named("p", "p", "arn:3", pending)},
		},
		"PeerIncomplete": {
			reason: "One name alone says nothing.", mr: unnamed("arn:1"), others: []*unstructured.Unstructured{xptest.MR("o", xptest.Reconciled()), unnamed("arn:2", xptest.JSON(
				`{"metadata":{"name":"p"}}`))}, want: want{Warns: []string{unsure + ": no other of its kind"}, Lists: 1},
		},
		"Alone": {reason: "Nobody can tell.", mr: unnamed("vpc-1"), want: want{Warns: []string{unsure + ": no other of its kind"}, Lists: 1}},
		"AloneObserves": {
			reason: "Nobody can tell, and it makes nothing.", mr: unnamed("vpc-1", observes), want: want{Lists: 1},
		},
		"Taken": {
			reason: "Two must not manage one.", mr: unnamed("vpc-1"), others: []*unstructured.Unstructured{named("o", "vpc-1", "vpc-1")},
			want: want{Warns: []string{unsure + ": another of its kind has that for its external-name"}, Lists: 1},
		},
		"Setting": {
			reason: "A person knows the kind.", mr: unnamed("vpc-1"), settings: fromID("Zone.example.org, Bucket.cloud.example.org"), want: want{Name: "vpc-1", Warns: []string{sure}},
		},
		"SettingOfTheBackup": {
			reason: "For one backup.", mr: unnamed("vpc-1"), annotations: map[string]string{"velero.crossplane.io/external-name-from-id": "Bucket.cloud.example.org"},
			want: want{Name: "vpc-1", Warns: []string{sure}},
		},
		"Unnamed": {
			reason: "A person knows that the kind has no names.", mr: unnamed(""), settings: withoutName("Zone.example.org, Bucket.cloud.example.org"), want: want{Unnamed: true},
		},
		"UnnamedID": {reason: "Whatever its provider calls it.", mr: unnamed("vpc-1"), settings: withoutName("Bucket.cloud.example.org"), want: want{Unnamed: true}},
		"UnnamedOfTheBackup": {
			reason: "For one backup.", mr: unnamed(""), annotations: map[string]string{"velero.crossplane.io/without-external-name": "Bucket.cloud.example.org"},
			want: want{Unnamed: true},
		},
		"UnnamedOfAnother": {
			reason: "A kind of another group is another.", mr: unnamed(""), settings: withoutName("Bucket.example.org"),
			want: want{Warns: []string{"if none of its kind ever has one, add Bucket.cloud.example.org to the setting without-external-name"}},
		},
		"UnnamedCreatePending": {
			reason: "Whether it was created nobody knows all the same.", mr: unnamed("", xptest.Without("metadata", "annotations"), pending),
			settings: withoutName("Bucket.cloud.example.org"), want: want{Warns: []string{"is being created"}},
		},
		"UnnamedAndFromID": {
			reason: "A name is safer than none.", mr: unnamed("vpc-1"),
			settings: map[string]string{"external-name-from-id": "Bucket.cloud.example.org", "without-external-name": "Bucket.cloud.example.org"},
			want:     want{Name: "vpc-1", Warns: []string{sure}},
		},
		"UnnamedAndNamed": {reason: "It has one.", mr: xptest.MR("b"), settings: withoutName("Bucket.cloud.example.org"), want: want{Name: "b"}},
		"SettingOfAnother": {
			reason: "A kind of another group is another.", mr: unnamed("vpc-1"), settings: fromID("Bucket.example.org"),
			want: want{Warns: []string{"add Bucket.cloud.example.org to the setting external-name-from-id"}, Lists: 1},
		},
		"XR": {
			reason: "An XR is no MR, whatever finalizers it has.", mr: xptest.XR("x", xptest.NeverComposed(), xptest.Without("spec", "compositionRef"),
				xptest.Finalizers(xp.FinalizerComposite, xp.FinalizerManaged)), others: []*unstructured.Unstructured{xptest.XRD("xorders.example.org")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := clusterOf(append(tc.others, tc.mr)...)
			c.settings = tc.settings
			log, hook := logtest.NewNullLogger()
			stored, _, _, _, err := NewTree(NewResolver(c), log).Execute(tc.mr.DeepCopy(), &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}})
			if err != nil {
				t.Fatal(err)
			}
			u := &unstructured.Unstructured{Object: stored.UnstructuredContent()}
			got := want{Name: u.GetAnnotations()[xp.AnnotationExternalName], Lists: len(c.lists), Unnamed: isNoted(u)}
			for i, e := range hook.AllEntries() {
				got.Warns = append(got.Warns, e.Message)
				if i < len(tc.want.Warns) && strings.Contains(e.Message, tc.want.Warns[i]) && strings.HasPrefix(e.Message, xp.String(tc.mr)+" ") {
					got.Warns[i] = tc.want.Warns[i]
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			without := xptest.With(u, xptest.Without("metadata", "annotations", xp.AnnotationExternalName), xptest.Without("metadata", xp.FieldRestoreFirst),
				xptest.Without("metadata", xp.FieldUnnamed))
			if diff := cmp.Diff(xptest.With(tc.mr, xptest.Without("metadata", "annotations", xp.AnnotationExternalName)), without); diff != "" {
				t.Errorf("Nothing else is written: -want, +got:\n%s", diff)
			}
		})
	}
}

// The MRs of a kind are read once for all that lack a name.
func TestPeersAreReadOnce(t *testing.T) {
	c := clusterOf(named("o", "vpc-2", "vpc-2"))
	log, _ := logtest.NewNullLogger()
	tree := NewTree(NewResolver(c), log)
	for _, id := range []string{"vpc-1", "vpc-3"} {
		stored, _, _, _, err := tree.Execute(unnamed(id), &velerov1.Backup{})
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: stored.UnstructuredContent()}
		if got := u.GetAnnotations()[xp.AnnotationExternalName]; got != id {
			t.Errorf("got %q, want %q", got, id)
		}
	}
	c.checkCost(t)
}

// An MR is backed up also if its peers can't be read.
func TestTreeBacksUpWithoutPeers(t *testing.T) {
	c := clusterOf()
	log, hook := logtest.NewNullLogger()
	tree := NewTree(NewResolver(c), log)
	if _, err := tree.settings(&velerov1.Backup{}); err != nil {
		t.Fatal(err)
	}
	c.down = true
	stored, _, _, _, err := tree.Execute(unnamed("vpc-1"), &velerov1.Backup{})
	// What activates its kind can't be read either.
	if err != nil || stored == nil || len(hook.AllEntries()) != 2 || !strings.Contains(hook.LastEntry().Message, errAPI.Error()) {
		t.Errorf("got %v, error %v, log %v", stored, err, hook.AllEntries())
	}
}

// An unreadable setting turns off its own feature only.
func TestTreeWarnsOfBadSettings(t *testing.T) {
	c := clusterOf(named("o", "vpc-2", "vpc-2"))
	c.settings = fromID("vpcs")
	got := backUp(c, unnamed("vpc-1"), &velerov1.Backup{})
	if got.Err != nil || got.Stored == nil || len(got.Left) != 2 || !strings.HasPrefix(got.Left[0], "the settings external-name-from-id and without-external-name: cannot read the ConfigMap of settings: ") {
		t.Errorf("It is named: got error %v, warnings %q", got.Err, got.Left)
	} else if name := got.Stored.GetAnnotations()[xp.AnnotationExternalName]; name != "vpc-1" {
		t.Errorf("What the others of the kind say counts all the same; got the name %q", name)
	}
	if got := backUp(c, xptest.MR("b"), &velerov1.Backup{}); got.Err != nil || len(got.Left) > 0 {
		t.Errorf("got error %v, warnings %q", got.Err, got.Left)
	}
}

// The stored copy of an XR has the conditions of what it composes, and of no other.
func TestTreeNotesConditions(t *testing.T) {
	runsOn, _ := platform()
	x := xptest.XR("x")
	well := xptest.JSON(`{"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Synced","status":"True"}]}}`)
	b, c := xptest.MR("b", xptest.ControlledBy(x), well), xptest.MR("c", xptest.ControlledBy(x), xptest.Reconciled())
	d := xptest.MR("d", xptest.ControlledBy(x), xptest.Synced("False", "ReconcileError", "m"))
	child := xptest.XR("child", xptest.ControlledBy(x), well)
	theirs, gone := xptest.MR("t", xptest.ControlledBy(xptest.XR("y")), well), xptest.MR("gone")
	item := xptest.With(x, xptest.Refs(b, theirs, c, d, gone, child), xptest.Field([]any{"forged"}, "metadata", xp.FieldConditions))
	got := backUp(clusterOf(append(runsOn, b, c, d, child, theirs)...), item, &velerov1.Backup{})
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	refs, err := xp.CompositeFrom(got.Stored).ResourceRefs()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]xp.TrueConditions{"Ready,Synced", xp.UnknownConditions, "Synced", "", xp.UnknownConditions, "Ready,Synced"}, xp.SavedConditions(got.Stored, refs)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := backUp(clusterOf(), xptest.MR("b", xptest.Field([]any{"forged"}, "metadata", xp.FieldConditions)), &velerov1.Backup{}); xp.HasBackupMetadata(got.Stored) {
		t.Errorf("Nothing is noted of an MR; got %v", got.Stored.Object["metadata"])
	}
}
