package restoreitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// With --existing-resource-policy=update Velero would write the backup's resourceRefs into a live
// XR, which may compose other resources now.
func TestAdoptLeavesWhatIsLive(t *testing.T) {
	xr, claim, mr := xptest.XR("x"), xptest.Claim("o"), xptest.MR("b")
	composition := xptest.Composition("c", xr)
	copied := xptest.Claim("o", xptest.In("copy"))
	config := xptest.Object("cloud.example.org/v1beta1", "ProviderConfig", "", "default")
	thing := xptest.Object("example.org/v1", "Thing", "team-a", "t")
	provider := xptest.Object("pkg.crossplane.io/v1", "Provider", "", "cloud", xptest.Field("Manual", "spec", "revisionActivationPolicy"))
	revision := xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "cloud-1", xptest.ControlledBy(provider))
	environment := xptest.Object("apiextensions.crossplane.io/v1beta1", "EnvironmentConfig", "", "prod")
	activation, mrd := xptest.ActivationPolicy("all", xptest.Activating("*")), xptest.ManagedDefinition("buckets", mr, xptest.Inactive())
	const update = velerov1.PolicyTypeUpdate
	inStore := xptest.Secret("s", xptest.Field("Opaque", "type"), xptest.StoredBy(mr))
	type want struct {
		Skip bool
		Op   string
		Err  error
	}
	cases := map[string]struct {
		reason  string
		policy  velerov1.PolicyType
		item    *unstructured.Unstructured
		live    *cluster
		mapping map[string]string
		// namespaces are the included ones, all if there are none.
		namespaces []string
		want       want
	}{
		"XR": {
			reason: "What is live stays as it is; what an earlier restore holds is adopted.",
			policy: update, item: xr, live: live(xr), want: want{Skip: true, Op: operation},
		},
		"Claim": {reason: "The same.", policy: update, item: claim, live: live(claim), want: want{Skip: true, Op: "OrderClaim.v1alpha1.example.org/team-a/o"}},
		"MR":    {reason: "The external-name of the backup may be another's by now.", policy: update, item: mr, live: live(mr), want: want{Skip: true}},
		"Publishing": {
			reason: "One that an earlier restore holds is let go.", policy: update, item: xptest.With(mr, xptest.PublishesTo("infra", "s")), live: live(mr),
			want: want{Skip: true, Op: "Bucket.v1alpha1.cloud.example.org//b"},
		},
		"Marked": {
			reason: "So is one that publishes no more.", policy: update, item: marked(mr), live: live(mr),
			want: want{Skip: true, Op: "Bucket.v1alpha1.cloud.example.org//b"},
		},
		"Unreadable": {
			reason: "The operation of one whose mark can't be read says so.", policy: update, item: xptest.With(mr, xptest.Annotated(adoption.AnnotationHold, "?")),
			live: live(mr), want: want{Skip: true, Op: "Bucket.v1alpha1.cloud.example.org//b"},
		},
		"Composed": {reason: "The same.", policy: update, item: xptest.Secret("s"), live: live(xptest.Secret("s")), want: want{Skip: true}},
		"Stored": {
			reason: "The UID of the backup on what was published with a secret store would keep its owner out.", policy: update, item: inStore, live: live(inStore),
			want: want{Skip: true},
		},
		"Platform": {
			reason: "A restore of one namespace must not change the Composition of all.",
			policy: update, item: composition, live: live(composition), want: want{Skip: true},
		},
		"Config":            {reason: "What is to be installed, and how it works, is a person's to update.", policy: update, item: config, live: failingCluster(errAPI)},
		"Provider":          {reason: "The same.", policy: update, item: provider, live: failingCluster(errAPI)},
		"EnvironmentConfig": {reason: "The same.", policy: update, item: environment, live: failingCluster(errAPI)},
		"ActivationPolicy":  {reason: "The same.", policy: update, item: activation, live: failingCluster(errAPI)},
		"ActivationOfOne": {
			reason: "A restore of one namespace must not activate kinds for all.", policy: update, item: activation, live: live(activation),
			namespaces: []string{"team-a"}, want: want{Skip: true},
		},
		"Definition": {
			reason: "An MRD is its provider's, in the version that is installed, and stays as active as it is.", policy: update, item: mrd, live: live(mrd),
			want: want{Skip: true},
		},
		"ConfigOfOne": {
			reason: "A restore of one namespace must not change how all MRs are reconciled.", policy: update, item: config, live: live(config),
			namespaces: []string{"team-a"}, want: want{Skip: true},
		},
		"Revision": {
			reason: "What a package has made is Crossplane's.", policy: update, item: revision, live: live(revision, provider), want: want{Skip: true},
		},
		"Mapped": {
			reason: "What counts is where it is restored to.", policy: update, item: claim, live: live(copied), mapping: map[string]string{"team-a": "copy"},
			want: want{Skip: true, Op: "OrderClaim.v1alpha1.example.org/copy/o"},
		},
		"Absent": {reason: "What is not there comes back.", policy: update, item: xr, live: live(), want: want{Op: operation}},
		"Other":  {reason: "What is not Crossplane's is the person's to update.", policy: update, item: thing, live: failingCluster(errAPI)},
		"None":   {reason: "Without the policy Velero leaves it by itself, and nobody needs to be asked.", item: xr, live: failingCluster(errAPI), want: want{Op: operation}},
		"NoneOf": {reason: "The same.", policy: velerov1.PolicyTypeNone, item: xr, live: failingCluster(errAPI), want: want{Op: operation}},
		"API":    {reason: "Without an answer nothing is written.", policy: update, item: xr, live: failingCluster(errAPI), want: want{Err: errAPI}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			restore := restoreOf(tc.mapping)
			restore.Spec.ExistingResourcePolicy, restore.Spec.IncludedNamespaces = tc.policy, tc.namespaces
			out := adopt(t, tc.live, tc.item, restore)
			got := want{Err: out.err}
			if out.err == nil {
				got = want{Skip: out.SkipRestore, Op: out.OperationID}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if tc.want.Skip && (len(out.logged) != 1 || !strings.HasPrefix(out.logged[0], "warning: It exists, so it is left as it is")) {
				t.Errorf("%s\nnothing is skipped silently; got %v", tc.reason, out.logged)
			}
		})
	}
}

func TestAdoptLeavesAlone(t *testing.T) {
	for name, item := range map[string]*unstructured.Unstructured{
		"FreeMR":         xptest.MR("b"),
		"Secret":         xptest.Secret("s", xptest.Field("Opaque", "type"), xptest.ControlledBy(xptest.XR("x"))),
		"Composition":    xptest.Composition("orders", xptest.XR("x")),
		"ProviderConfig": xptest.Object("cloud.example.org/v1beta1", "ProviderConfig", "", "default"),
		"Provider":       xptest.Object("pkg.crossplane.io/v1", "Provider", "", "p"),
		"ControlPlane":   xptest.Object("spaces.upbound.io/v1beta1", "ControlPlane", "team-a", "c", xptest.JSON(`{"spec":{"crossplane":{"version":"1.20"}}}`)),
		"Owned":          xptest.Object("example.org/v1", "Thing", "team-a", "t", xptest.ControlledBy(xptest.Claim("o"))),
	} {
		c := failingCluster(errAPI)
		c.rankErr = errAPI
		out := adopt(t, c, item, restoreOf(nil))
		if out.err != nil || out.UpdatedItem != nil || out.OperationID != "" || out.SkipRestore || out.AdditionalItems != nil || len(out.logged) > 0 {
			t.Errorf("%s is none of our business, and must go through untouched; got %+v", name, out)
		}
		for _, asked := range c.asked {
			if asked != "settings in velero" {
				t.Errorf("%s: asked for %s", name, asked)
			}
		}
	}
}

// Each restored item costs one request per owner, and no other.
func TestAdoptCosts(t *testing.T) {
	x := xptest.XR("x", xptest.Refs(xptest.MR("b")))
	log, _ := logtest.NewNullLogger()
	c := live(x)
	a := NewAdopt(Crossplane(), c, nil, log)
	for range 2 {
		for _, item := range []*unstructured.Unstructured{
			xptest.MR("b", xptest.ControlledBy(x)), xptest.MR("c"), xptest.XR("y"), xptest.Object("example.org/v1", "T", "a", "t"),
		} {
			if _, err := a.Execute(inputFor(item, restoreOf(nil))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff([]string{"settings in velero", "owner XOrder /x", "owner XOrder /x"}, c.asked); diff != "" {
		t.Errorf("-want, +asked:\n%s", diff)
	}
}

// A note from the backup is removed, also in a restore that does not use it.
func TestAdoptTakesNotesOff(t *testing.T) {
	for name, note := range map[string]xptest.Option{"MustInclude": xp.SetMustInclude, "MustRestore": xptest.Annotated(xp.AnnotationMustRestore, "true"), "Tree": xptest.Tree("a.b//c"), "Dangling": xptest.Dangling()} {
		out := adopt(t, live(), xptest.MR("b", note), restoreOf(nil))
		if out.err != nil || out.object == nil || xp.HasBackupMetadata(out.object) {
			t.Errorf("%s must not get into the cluster; got %+v", name, out)
		}
	}
}

// Invalid settings must not look as if they counted.
func TestAdoptSettings(t *testing.T) {
	restore := restoreOf(nil)
	restore.Annotations = map[string]string{"velero.crossplane.io/clone": "maybe"}
	for name, tc := range map[string]struct {
		live    *cluster
		restore *velerov1.Restore
		// reported is the failure of an operation while all is held, err that of the item.
		reported, err string
	}{
		"Annotation": {
			live: live(), restore: restore, reported: `XOrder x: cannot read the annotation velero.crossplane.io/clone: clone is hold, observe or new, not "maybe"; so no setting is heard`,
		},
		"ConfigMap": {
			live: &cluster{config: map[string]string{"clone": ""}}, restore: restoreOf(nil), reported: `cannot read the ConfigMap of settings: clone is hold, observe or new, not ""`,
		},
		"Several": {
			live: &cluster{configErr: setting.InvalidError{Err: errAPI}}, restore: restoreOf(nil), reported: errAPI.Error(),
		},
		"API": {live: &cluster{configErr: errAPI}, restore: restoreOf(nil), err: "cannot restore XOrder x: " + errAPI.Error()},
	} {
		out := adopt(t, tc.live, xptest.XR("x"), tc.restore)
		if tc.err != "" && (out.err == nil || out.err.Error() != tc.err) {
			t.Errorf("%s: got error %v, want %s", name, out.err, tc.err)
		}
		if tc.reported != "" {
			h, err := adoption.HoldOf(out.object)
			if out.err != nil || err != nil || h == nil || !h.Quarantine || !out.failed || !strings.Contains(out.note, tc.reported) || !strings.HasSuffix(out.note, "release --restore velero/monday") {
				t.Errorf("%s: all is held, and an operation fails with %q; got %+v, %q, %v, %v", name, tc.reported, h, out.note, out.err, err)
			}
		}
		if out := adopt(t, tc.live, xptest.Object("example.org/v1", "Thing", "team-a", "t"), tc.restore); out.err != nil {
			t.Errorf("%s: what is not Crossplane's must not fail for it; got %v", name, out.err)
		}
	}
}

// A restore has thousands of items.
func TestAdoptNotesUnreadableSettingsOnce(t *testing.T) {
	log, _ := logtest.NewNullLogger()
	c := live()
	c.config = map[string]string{"hold": "al"}
	a := NewAdopt(Crossplane(), c, nil, log)
	reported := 0
	for _, name := range []string{"a", "b", "c"} {
		out, err := a.Execute(inputFor(xptest.MR(name), restoreOf(nil)))
		if err != nil {
			t.Fatal(err)
		}
		if _, note := cutNote(out.OperationID); note != "" {
			reported++
		}
	}
	if reported != 1 {
		t.Errorf("it is told %d times", reported)
	}
}

func TestAdoptHoldsSchedules(t *testing.T) {
	cron := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("ops.crossplane.io/v1alpha1", "CronOperation", "", "nightly", o...)
	}
	watch := xptest.Object("ops.crossplane.io/v1alpha1", "WatchOperation", "", "w", xptest.Annotated(xp.AnnotationPaused, "false"))
	for name, item := range map[string]*unstructured.Unstructured{"Cron": cron(), "Watch": watch} {
		out := adopt(t, live(), item, restoreOf(nil))
		if out.err != nil || out.OperationID != "" || out.SkipRestore {
			t.Fatalf("%s: got %+v", name, out)
		}
		h, err := adoption.HoldOf(out.object)
		if err != nil || h == nil || h.Reason == "" || h.Restore != "velero/monday" || h.Pinned || !xp.IsPaused(out.object) {
			t.Errorf("%s starts Operations by itself, so it comes back paused; got %+v, %v", name, h, err)
		}
		if len(out.logged) != 1 || !strings.HasPrefix(out.logged[0], "warning: Restored paused: ") {
			t.Errorf("%s: nobody is surprised; got %v", name, out.logged)
		}
	}
	out := adopt(t, live(), cron(xptest.Annotated(xp.AnnotationPaused, "true")), restoreOf(nil))
	if h, err := adoption.HoldOf(out.object); h != nil || err != nil || !xp.IsPaused(out.object) || len(out.logged) > 0 {
		t.Errorf("One that a person had paused is theirs; got %+v, %v, %v", h, err, out.logged)
	}
}

func TestAdoptRefusesWhatALiveXRDoesNotList(t *testing.T) {
	old := xptest.XR("x", xptest.UID("old"))
	bucket := xptest.MR("b", xptest.ControlledBy(old))
	x := xptest.XR("x", xptest.UID("new"))
	labelled := func() *velerov1.Restore {
		r := restoreOf(nil)
		r.Spec.LabelSelector = &metav1.LabelSelector{}

		return r
	}
	const warned = "warning: Not restored: its XR exists and does not list it any more, so nothing would look after it. If it is still wanted, pause the XR, " +
		"put it into the XR's resourceRefs, and restore again; its external resource is left as it is: the owner does not list it in its resourceRefs"
	const next = "warning: Restored without an owner that it had: "
	const forged = "warning: Nothing is done on the word of a mark that this plugin did not write"
	uncontrolled := xptest.With(bucket, xptest.Without("metadata", "ownerReferences"),
		xptest.OwnedBy(metav1.OwnerReference{APIVersion: xptest.LegacyVersion, Kind: xptest.LegacyKind, Name: "x"}))
	type want struct {
		Skip   bool
		Logged []string
	}
	cases := map[string]struct {
		reason  string
		item    *unstructured.Unstructured
		live    *cluster
		restore *velerov1.Restore
		want    want
	}{
		"Unheld": {
			reason: "Crossplane reconciles the XR without it, perhaps with another in its place.",
			item:   bucket, live: live(x), restore: restoreOf(nil), want: want{Skip: true, Logged: []string{warned}},
		},
		"Unreadable": {
			reason: "A mark that can't be read may be a hold.",
			item:   bucket, live: live(xptest.With(x, xptest.Annotated(adoption.AnnotationHold, "?"), xptest.Annotated(xp.AnnotationPaused, "true"))), restore: restoreOf(nil),
			want: want{Logged: []string{forged, next + "the owner does not list it in its resourceRefs"}},
		},
		"Forged": {
			reason: "Whoever writes a mark onto an XR at work has not paused it.",
			item:   bucket, live: live(xptest.With(x, xptest.Annotated(adoption.AnnotationHold, "?"))), restore: restoreOf(nil),
			want: want{Skip: true, Logged: []string{forged, warned}},
		},
		"Held": {
			reason: "An XR that is held is as old as the item.",
			item:   bucket, live: live(heldWith(x)), restore: restoreOf(nil),
			want: want{Logged: []string{next + "the owner does not list it in its resourceRefs"}},
		},
		"Deleting": {
			reason: "An XR that is being deleted is at work on that.",
			item:   bucket, live: live(xptest.With(x, xptest.Deleting())), restore: restoreOf(nil),
			want: want{Logged: []string{next + "it is being deleted"}},
		},
		"NotComposed": {
			reason: "What is not composed is not the XR's.", item: xptest.Secret("s", xptest.ControlledBy(old)), live: live(x), restore: restoreOf(nil),
			want: want{Logged: []string{next + "the owner does not publish its connection details in it"}},
		},
		"NoController": {
			reason: "An owner that is not the controller did not compose it.", item: uncontrolled, live: live(x), restore: restoreOf(nil),
		},
		"Selective": {
			reason: "In a restore by labels the XR comes after what it composes, and takes it over.",
			item:   bucket, live: live(), restore: labelled(),
			want: want{Logged: []string{"info: Restored before its owner, which takes it over: it is not in the cluster"}},
		},
		"Absent": {
			reason: "Without the XR it comes back without it.",
			item:   bucket, live: live(), restore: restoreOf(nil), want: want{Logged: []string{next + "it is not in the cluster"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := adopt(t, tc.live, tc.item, tc.restore)
			if out.err != nil {
				t.Fatal(out.err)
			}
			if diff := cmp.Diff(tc.want, want{Skip: out.SkipRestore, Logged: out.logged}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
