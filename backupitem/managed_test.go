package backupitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

func withoutName(kinds string) map[string]string {
	return map[string]string{"without-external-name": kinds}
}

// said returns the messages in the log, each as the part of it that is wanted, if it has that.
func (s session) said(parts []string) (all []string) {
	for i, e := range s.log.AllEntries() {
		all = append(all, e.Message)
		if i < len(parts) && strings.Contains(e.Message, parts[i]) {
			all[i] = parts[i]
		}
	}

	return all
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
	const sure, unsure = "The backup has it from status.atProvider.id", "may be another name"
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
		"Observed": {reason: "The external-name counts, whatever the provider's id.", mr: named("b", "ours", "theirs"), want: want{Name: "ours"}},
		"UpjetFound": {
			reason: "Upjet has found the external resource.", mr: xptest.MR("b", xptest.JSON(`{"spec":{"initProvider":{}},"status":{"atProvider":{"id":"b"}}}`)), want: want{Name: "b"},
		},
		"UpjetUnfound": {
			reason: "Upjet may still be creating the external resource.", mr: xptest.MR("b", xptest.JSON(`{"spec":{"initProvider":{}}}`)),
			want: want{Name: "b", Warns: []string{"A restore of this backup lets it only observe"}},
		},
		"NeverCreated": {reason: "The external resource never existed.", mr: unnamed("", xptest.Without("metadata", "annotations"), xptest.Annotated(xp.AnnotationCreateFailed, began)), want: want{}},
		"CreatePending": {
			reason: "Only the cloud knows whether a pending creation succeeded.", mr: unnamed("", xptest.Without("metadata", "annotations"), pending), want: want{Warns: []string{"is being created"}},
		},
		"CreatePendingID": {
			reason: "An id from before the creation proves nothing.", want: want{Warns: []string{"is being created"}}, others: []*unstructured.Unstructured{named("o", "vpc-2", "vpc-2")},
			mr: unnamed("vpc-1", xptest.Annotated(xp.AnnotationCreateSucceeded, began), xptest.Annotated(xp.AnnotationCreatePending, ended)),
		},
		"Unknown":         {reason: "A restore may create the external resource a second time.", mr: unnamed(""), want: want{Warns: []string{"so its external resource is unknown"}}},
		"UnknownObserves": {reason: "An MR that only observes creates no external resource.", mr: unnamed("", observes)},
		"PeersAgree": {
			reason: "In all other MRs of the kind the id equals the external-name.", mr: unnamed("vpc-1"), others: []*unstructured.Unstructured{named("o", "vpc-2", "vpc-2"), named("p", "vpc-3", "vpc-3")},
			want: want{Name: "vpc-1", Warns: []string{sure}, Lists: 1},
		},
		"PeerDiffers": {
			reason: "One MR whose id differs from its external-name is enough for doubt.", mr: unnamed("arn:1"), others: []*unstructured.Unstructured{named("o", "vpc-2", "vpc-2"), named("p", "p", "arn:2")},
			want: want{Warns: []string{unsure + ": Bucket p has an external-name that differs from its id"}, Lists: 1},
		},
		"PeerDiffersUnsynced": {
			reason: "An MR with a failing provider is enough for doubt.", mr: unnamed("arn:1"), want: want{Warns: []string{unsure + ": Bucket p has an external-name that differs"}, Lists: 1},
			others: []*unstructured.Unstructured{named("o", "vpc-2", "vpc-2"), named("p", "p", "arn:2", xptest.Synced("False", "ReconcileError", ""))},
		},
		"PeerForged": {
			reason: "A user can write any external-name, and the provider fails with a wrong one.", mr: unnamed("arn:1"),
			others: []*unstructured.Unstructured{named("o", "arn:2", "arn:2", xptest.Synced("False", "ReconcileError", ""))},
			want:   want{Warns: []string{unsure + ": no other MR of its kind"}, Lists: 1},
		},
		"PeerCreatePending": {
			reason: "An MR with a pending creation proves nothing.", mr: unnamed("arn:1"), want: want{Warns: []string{unsure + ": no other MR of its kind"}, Lists: 1},
			others: []*unstructured.Unstructured{named("o", "arn:2", "arn:2", pending), named("p", "p", "arn:3", pending)},
		},
		"Alone": {reason: "Without other MRs of the kind nothing supports the id.", mr: unnamed("vpc-1"), want: want{Warns: []string{unsure + ": no other MR of its kind"}, Lists: 1}},
		"AloneObserves": {
			reason: "Nothing supports the id, but an MR that only observes creates nothing.", mr: unnamed("vpc-1", observes), want: want{Lists: 1},
		},
		"Taken": {
			reason: "Two MRs must not manage one external resource.", mr: unnamed("vpc-1"), others: []*unstructured.Unstructured{named("o", "vpc-1", "vpc-1")},
			want: want{Warns: []string{unsure + ": another MR of its kind has that external-name"}, Lists: 1},
		},
		"Setting": {
			reason: "The setting derives the external-name from the id for this kind.", mr: unnamed("vpc-1"), settings: fromID("Zone.example.org, Bucket.cloud.example.org"), want: want{Name: "vpc-1", Warns: []string{sure}},
		},
		"SettingOfTheBackup": {
			reason: "An annotation on the Backup applies the setting to one backup.", mr: unnamed("vpc-1"), annotations: map[string]string{"velero.crossplane.io/external-name-from-id": "Bucket.cloud.example.org"},
			want: want{Name: "vpc-1", Warns: []string{sure}},
		},
		"UnnamedID": {reason: "The setting for kinds without external-names takes precedence over the id.", mr: unnamed("vpc-1"), settings: withoutName("Bucket.cloud.example.org"), want: want{Unnamed: true}},
		"UnnamedOfAnother": {
			reason: "The setting names a kind of another group.", mr: unnamed(""), settings: withoutName("Bucket.example.org"),
			want: want{Warns: []string{"If no MR of its kind ever has one, add Bucket.cloud.example.org to the setting without-external-name"}},
		},
		"UnnamedCreatePending": {
			reason: "Even for a kind without external-names a pending creation is unclear.", mr: unnamed("", xptest.Without("metadata", "annotations"), pending),
			settings: withoutName("Bucket.cloud.example.org"), want: want{Warns: []string{"is being created"}},
		},
		"UnnamedAndFromID": {
			reason: "With both settings the external-name from the id is safer.", mr: unnamed("vpc-1"),
			settings: map[string]string{"external-name-from-id": "Bucket.cloud.example.org", "without-external-name": "Bucket.cloud.example.org"},
			want:     want{Name: "vpc-1", Warns: []string{sure}},
		},
		"SettingOfAnother": {
			reason: "The setting names a kind of another group.", mr: unnamed("vpc-1"), settings: fromID("Bucket.example.org"),
			want: want{Warns: []string{"add Bucket.cloud.example.org to the setting external-name-from-id"}, Lists: 1},
		},
		"XR": {
			reason: "An XR is not an MR, whatever its finalizers.", mr: xptest.XR("x", xptest.NeverComposed(), xptest.Without("spec", "compositionRef"),
				xptest.Finalizers(xp.FinalizerComposite, xp.FinalizerManaged)), others: []*unstructured.Unstructured{xptest.XRD("xorders.example.org")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := clusterOf(append(tc.others, tc.mr)...)
			c.settings = tc.settings
			s := newSession(t, c)
			u := s.take(tc.mr, &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}).Stored
			got := want{Name: u.GetAnnotations()[xp.AnnotationExternalName], Warns: s.said(tc.want.Warns), Lists: len(c.lists), Unnamed: xp.HasFlag(u, xp.FieldUnnamed)}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			without := xptest.With(u, xptest.Without("metadata", "annotations", xp.AnnotationExternalName), xptest.Without("metadata", xp.FieldRestoreFirst),
				xptest.Without("metadata", xp.FieldUnnamed))
			if diff := cmp.Diff(xptest.With(tc.mr, xptest.Without("metadata", "annotations", xp.AnnotationExternalName)), without); diff != "" {
				t.Errorf("the plugin must write no other field: -want, +got:\n%s", diff)
			}
		})
	}
}

// The MRs of a kind are read once for all that lack a name.
func TestPeersAreReadOnce(t *testing.T) {
	c := clusterOf(named("o", "vpc-2", "vpc-2"))
	s := newSession(t, c)
	for _, id := range []string{"vpc-1", "vpc-3"} {
		if got := s.take(unnamed(id), &velerov1.Backup{}).Stored.GetAnnotations()[xp.AnnotationExternalName]; got != id {
			t.Errorf("got %q, want %q", got, id)
		}
	}
	c.checkCost(t)
}

// An MR is backed up also if its peers can't be read.
func TestTreeBacksUpWithoutPeers(t *testing.T) {
	c := clusterOf()
	s := newSession(t, c)
	if _, err := s.settings(&velerov1.Backup{}); err != nil {
		t.Fatal(err)
	}
	c.down = true
	// What activates its kind can't be read either.
	if got := s.take(unnamed("vpc-1"), &velerov1.Backup{}); len(got.Left) != 2 || !strings.Contains(s.log.LastEntry().Message, errAPI.Error()) {
		t.Errorf("got %v", got.Left)
	}
}

// An unreadable setting turns off its own feature only.
func TestTreeWarnsOfBadSettings(t *testing.T) {
	c := clusterOf(named("o", "vpc-2", "vpc-2"))
	c.settings = fromID("vpcs")
	got := backUp(t, c, unnamed("vpc-1"), &velerov1.Backup{})
	if len(got.Left) != 2 || !strings.HasPrefix(got.Left[0], "the settings external-name-from-id and without-external-name [") {
		t.Errorf("the log must name the unreadable settings: got %q", got.Left)
	} else if name := got.Stored.GetAnnotations()[xp.AnnotationExternalName]; name != "vpc-1" {
		t.Errorf("the other MRs of the kind must still count; got the name %q", name)
	}
	if got := backUp(t, c, xptest.MR("b"), &velerov1.Backup{}); len(got.Left) > 0 {
		t.Errorf("got %q", got.Left)
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
	got := backUp(t, clusterOf(append(runsOn, b, c, d, child, theirs)...), item, &velerov1.Backup{})
	refs, err := xp.CompositeFrom(got.Stored).ResourceRefs()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]xp.TrueConditions{"Ready,Synced", xp.UnknownConditions, "Synced", "", xp.UnknownConditions, "Ready,Synced"}, xp.SavedConditions(got.Stored, refs)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := backUp(t, clusterOf(), xptest.MR("b", xptest.Field([]any{"forged"}, "metadata", xp.FieldConditions)), &velerov1.Backup{}); xp.HasBackupMetadata(got.Stored) {
		t.Errorf("want no note on an MR; got %v", got.Stored.Object["metadata"])
	}
}
