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
	shared := xptest.Object("policies.example.org/v1", "ClusterPolicy", "", "p", xptest.Labelled(xp.LabelClaimNamespace, "team-a"))
	const update = velerov1.PolicyTypeUpdate
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
			reason: "A live object stays as it is, and an XR that an earlier restore holds is adopted.",
			policy: update, item: xr, live: live(xr), want: want{Skip: true, Op: operation},
		},
		"Claim": {reason: "A live claim stays as it is and is adopted too.", policy: update, item: claim, live: live(claim), want: want{Skip: true, Op: "OrderClaim.v1alpha1.example.org/team-a/o"}},
		"MR":    {reason: "The external-name in the backup may belong to another resource by now.", policy: update, item: mr, live: live(mr), want: want{Skip: true}},
		"Publishing": {
			reason: "An MR that an earlier restore holds is released.", policy: update, item: xptest.With(mr, xptest.PublishesTo("infra", "s")), live: live(mr),
			want: want{Skip: true, Op: "Bucket.v1alpha1.cloud.example.org//b"},
		},
		"Marked": {
			reason: "A marked MR that no longer publishes is released too.", policy: update, item: marked(mr), live: live(mr),
			want: want{Skip: true, Op: "Bucket.v1alpha1.cloud.example.org//b"},
		},
		"Unreadable": {
			reason: "The operation reports an unreadable mark.", policy: update, item: xptest.With(mr, xptest.Annotated(adoption.AnnotationHold, "?")),
			live: live(mr), want: want{Skip: true, Op: "Bucket.v1alpha1.cloud.example.org//b"},
		},
		"Composed": {reason: "A live connection secret stays as it is.", policy: update, item: xptest.Secret("s"), live: live(xptest.Secret("s")), want: want{Skip: true}},
		"Platform": {
			reason: "A restore of one namespace must not change a Composition that all namespaces use.",
			policy: update, item: composition, live: live(composition), want: want{Skip: true},
		},
		"Config":            {reason: "A user decides whether a restore updates a ProviderConfig.", policy: update, item: config, live: failingCluster(errAPI)},
		"Provider":          {reason: "A user decides whether a restore updates a Provider.", policy: update, item: provider, live: failingCluster(errAPI)},
		"EnvironmentConfig": {reason: "A user decides whether a restore updates an EnvironmentConfig.", policy: update, item: environment, live: failingCluster(errAPI)},
		"ActivationPolicy":  {reason: "A user decides whether a restore updates an activation policy.", policy: update, item: activation, live: failingCluster(errAPI)},
		"ActivationOfOne": {
			reason: "A restore of one namespace must not activate kinds for all namespaces.", policy: update, item: activation, live: live(activation),
			namespaces: []string{"team-a"}, want: want{Skip: true},
		},
		"Definition": {
			reason: "The installed provider version owns the MRD, which stays as active as it is.", policy: update, item: mrd, live: live(mrd),
			want: want{Skip: true},
		},
		"ConfigOfOne": {
			reason: "A restore of one namespace must not change how providers reconcile all MRs.", policy: update, item: config, live: live(config),
			namespaces: []string{"team-a"}, want: want{Skip: true},
		},
		"Revision": {
			reason: "Crossplane manages the revision of a package.", policy: update, item: revision, live: live(revision, provider), want: want{Skip: true},
		},
		"Mapped": {
			reason: "The plugin looks for the live object in the mapped namespace.", policy: update, item: claim, live: live(copied), mapping: map[string]string{"team-a": "copy"},
			want: want{Skip: true, Op: "OrderClaim.v1alpha1.example.org/copy/o"},
		},
		"SharedOfOne": {
			reason: "A restore of one namespace must not change what all share.", policy: update, item: shared, live: live(shared), namespaces: []string{"team-a"},
			want: want{Skip: true},
		},
		"Shared":     {reason: "A user decides whether a restore updates objects of other projects.", policy: update, item: shared, live: failingCluster(errAPI)},
		"Absent":     {reason: "An object that is not live comes back.", policy: update, item: xr, live: live(), want: want{Op: operation}},
		"Other":      {reason: "A user decides whether a restore updates objects of other projects.", policy: update, item: thing, live: failingCluster(errAPI)},
		"None":       {reason: "Without an update policy Velero keeps live objects, so the plugin needs no look-up.", item: xr, live: failingCluster(errAPI), want: want{Op: operation}},
		"PolicyNone": {reason: "The policy none equals no policy.", policy: velerov1.PolicyTypeNone, item: xr, live: failingCluster(errAPI), want: want{Op: operation}},
		"API":        {reason: "Without an answer from the API server the plugin writes nothing.", policy: update, item: xr, live: failingCluster(errAPI), want: want{Err: errAPI}},
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
			if tc.want.Skip && (len(out.logged) != 1 || !strings.Contains(out.logged[0], "[KeptAsLive]")) {
				t.Errorf("%s\na skipped item needs a warning; got %v", tc.reason, out.logged)
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
		out := adopt(t, c, item, restoreOf(nil))
		if out.err != nil || out.UpdatedItem != nil || out.OperationID != "" || out.SkipRestore || out.AdditionalItems != nil || len(out.logged) > 0 {
			t.Errorf("the plugin must not change %s; got %+v", name, out)
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
	a := NewAdopt(Crossplane(), c, nil, log, Shared{})
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
	for name, note := range map[string]xptest.Option{"MustInclude": xptest.Annotated(xp.AnnotationMustInclude, "true"), "MustRestore": xptest.Annotated(xp.AnnotationMustRestore, "true"), "Tree": xptest.RestoreFirst("a.b//c"), "Dangling": xptest.UnresolvedRefs()} {
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
			live: live(), restore: restore, reported: `XOrder x: cannot read the annotation velero.crossplane.io/clone: clone is hold, observe or new, not "maybe" [SettingInvalid]; so the restore ignores all settings`,
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
			if out.err != nil || err != nil || h == nil || !h.Quarantine || !out.failed || !strings.Contains(out.note, tc.reported) || !strings.HasSuffix(out.note, "release --restore velero/monday [HeldForSettings]") {
				t.Errorf("%s: want a hold and an operation that fails with %q; got %+v, %q, %v, %v", name, tc.reported, h, out.note, out.err, err)
			}
		}
		if out := adopt(t, tc.live, xptest.Object("example.org/v1", "Thing", "team-a", "t"), tc.restore); out.err != nil {
			t.Errorf("%s: an object outside Crossplane must not fail for it; got %v", name, out.err)
		}
	}
}

// A restore has thousands of items.
func TestAdoptNotesUnreadableSettingsOnce(t *testing.T) {
	log, _ := logtest.NewNullLogger()
	c := live()
	c.config = map[string]string{"hold": "al"}
	a := NewAdopt(Crossplane(), c, nil, log, Shared{})
	reported := 0
	for _, name := range []string{"a", "b", "c"} {
		out, err := a.Execute(inputFor(xptest.MR(name), restoreOf(nil)))
		if err != nil {
			t.Fatal(err)
		}
		if _, note, _ := strings.Cut(out.OperationID, noteAfter); note != "" {
			reported++
		}
	}
	if reported != 1 {
		t.Errorf("the plugin named it %d times", reported)
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
			t.Errorf("%s starts Operations, so it must come back paused; got %+v, %v", name, h, err)
		}
		if len(out.logged) != 1 || !strings.HasSuffix(out.logged[0], "[StartsOperations]") {
			t.Errorf("%s: want one warning; got %v", name, out.logged)
		}
	}
	out := adopt(t, live(), cron(xptest.Annotated(xp.AnnotationPaused, "true")), restoreOf(nil))
	if h, err := adoption.HoldOf(out.object); h != nil || err != nil || !xp.IsPaused(out.object) || len(out.logged) > 0 {
		t.Errorf("the pause of a user must stay theirs; got %+v, %v, %v", h, err, out.logged)
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
	const warned = "warning: It is not restored, because its XR x exists and does not list it. If you need it, pause the XR, add it to the XR's resourceRefs, " +
		"and restore again [NotListed]"
	const taken = ". It is held. Restore again when its XR can come and lists it: the XR adopts it then. To let it run without an XR, run: " +
		"velero-plugin-for-crossplane release --force b [RestoredWithoutOwner]"
	const next = "warning: Restored without its owner XOrder x: "
	const forged = "warning: This plugin did not write the mark of the hold on XOrder x, so the restore ignores it: cannot read the annotation " +
		"velero.crossplane.x-k8s.io/hold of XOrder x: invalid character '?' looking for beginning of value [MarkForged]"
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
			reason: "Crossplane reconciles the XR without the MR, perhaps with a replacement.",
			item:   bucket, live: live(x), restore: restoreOf(nil), want: want{Skip: true, Logged: []string{warned}},
		},
		"Unreadable": {
			reason: "An unreadable mark on a paused XR may be a hold.",
			item:   bucket, live: live(xptest.With(x, xptest.Annotated(adoption.AnnotationHold, "?"), xptest.Annotated(xp.AnnotationPaused, "true"))), restore: restoreOf(nil),
			want: want{Logged: []string{forged, next + "the owner does not list it in its resourceRefs" + taken}},
		},
		"Forged": {
			reason: "A forged mark on a reconciled XR does not pause it.",
			item:   bucket, live: live(xptest.With(x, xptest.Annotated(adoption.AnnotationHold, "?"))), restore: restoreOf(nil),
			want: want{Skip: true, Logged: []string{forged, warned}},
		},
		"Held": {
			reason: "A held XR is as old as the item.",
			item:   bucket, live: live(heldWith(x)), restore: restoreOf(nil),
			want: want{Logged: []string{next + "the owner does not list it in its resourceRefs" + taken}},
		},
		"Deleting": {
			reason: "Crossplane composes no replacement for an XR that it deletes.",
			item:   bucket, live: live(xptest.With(x, xptest.Deleting())), restore: restoreOf(nil),
			want: want{Logged: []string{next + "it is being deleted" + taken}},
		},
		"NotComposed": {
			reason: "A Secret that is not composed is not in the XR's list.", item: xptest.Secret("s", xptest.ControlledBy(old)), live: live(x), restore: restoreOf(nil),
			want: want{Logged: []string{next + "the owner does not publish its connection details in it. If its publisher exists and can't publish, delete this Secret [RestoredWithoutOwner]"}},
		},
		"NoController": {
			reason: "An owner that is not the controller did not compose the item.", item: uncontrolled, live: live(x), restore: restoreOf(nil),
		},
		"Selective": {
			reason: "In a restore by labels the XR comes later and adopts the MR.",
			item:   bucket, live: live(), restore: labelled(),
			want: want{Logged: []string{"info: Restored before its owner, which takes it over"}},
		},
		"Absent": {
			reason: "Without its XR the MR comes back without an owner.",
			item:   bucket, live: live(), restore: restoreOf(nil), want: want{Logged: []string{next + "it is not in the cluster" + taken}},
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
