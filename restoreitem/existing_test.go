package restoreitem

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
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
	update, ofOne, mapped, unknown := updating(), updating(), updating(), updating()
	ofOne.Spec.IncludedNamespaces, mapped.Spec.NamespaceMapping, unknown.Spec.ExistingResourcePolicy = []string{"team-a"}, toCopy(), velerov1.PolicyTypeNone
	type want struct {
		Skip bool
		Op   string
	}
	skip, held := want{Skip: true}, want{Skip: true, Op: bucketOp}
	runAdopts(t, map[string]adoptCase[want]{
		"XR": {
			reason:  "A live object stays as it is, and an XR that an earlier restore holds is adopted.",
			restore: update, item: xr, live: live(xr), want: want{Skip: true, Op: operation},
		},
		"Claim": {reason: "A live claim stays as it is and is adopted too.", restore: update, item: claim, live: live(claim), want: want{Skip: true, Op: "OrderClaim.v1alpha1.example.org/team-a/o"}},
		"MR":    {reason: "The external-name in the backup may belong to another resource by now.", restore: update, item: mr, live: live(mr), want: skip},
		"Publishing": {
			reason: "An MR that an earlier restore holds is released.", restore: update, item: xptest.With(mr, xptest.PublishesTo("infra", "s")), live: live(mr),
			want: held,
		},
		"Marked": {reason: "A marked MR that no longer publishes is released too.", restore: update, item: marked(mr), live: live(mr), want: held},
		"Unreadable": {
			reason: "The operation reports an unreadable mark.", restore: update, item: xptest.With(mr, xptest.Annotated(hold.Annotation, "?")),
			live: live(mr), want: held,
		},
		"Platform": {
			reason:  "A restore of one namespace must not change a Composition that all namespaces use.",
			restore: update, item: composition, live: live(composition), want: skip,
		},
		"Config":           {reason: "A user decides whether a restore updates a ProviderConfig.", restore: update, item: config, live: failingCluster(errAPI)},
		"ActivationPolicy": {reason: "A user decides whether a restore updates an activation policy.", restore: update, item: activation, live: failingCluster(errAPI)},
		"ActivationOfOne": {
			reason: "A restore of one namespace must not activate kinds for all namespaces.", restore: ofOne, item: activation, live: live(activation), want: skip,
		},
		"Definition": {
			reason: "The installed provider version owns the MRD, which stays as active as it is.", restore: update, item: mrd, live: live(mrd), want: skip,
		},
		"ConfigOfOne": {
			reason: "A restore of one namespace must not change how providers reconcile all MRs.", restore: ofOne, item: config, live: live(config), want: skip,
		},
		"Revision":          {reason: "Crossplane manages the revision of a package.", restore: update, item: revision, live: live(revision, provider), want: skip},
		"Provider":          {reason: "A user decides whether a restore updates a Provider.", restore: update, item: provider, live: failingCluster(errAPI)},
		"EnvironmentConfig": {reason: "A user decides whether a restore updates an EnvironmentConfig.", restore: update, item: environment, live: failingCluster(errAPI)},
		"Mapped": {
			reason: "The plugin looks for the live object in the mapped namespace.", restore: mapped, item: claim, live: live(copied),
			want: want{Skip: true, Op: "OrderClaim.v1alpha1.example.org/copy/o"},
		},
		"SharedOfOne": {reason: "A restore of one namespace must not change what all share.", restore: ofOne, item: shared, live: live(shared), want: skip},
		"Shared":      {reason: "A user decides whether a restore updates objects of other projects.", restore: update, item: shared, live: failingCluster(errAPI)},
		"Absent":      {reason: "An object that is not live comes back.", restore: update, item: xr, live: live(), want: want{Op: operation}},
		"Other":       {reason: "A user decides whether a restore updates objects of other projects.", restore: update, item: thing, live: failingCluster(errAPI)},
		"None":        {reason: "Without an update policy Velero keeps live objects, so the plugin needs no look-up.", item: xr, live: failingCluster(errAPI), want: want{Op: operation}},
		"PolicyNone":  {reason: "The policy none equals no policy.", restore: unknown, item: xr, live: failingCluster(errAPI), want: want{Op: operation}},
		"API":         {reason: "Without an answer from the API server the plugin writes nothing.", restore: update, item: xr, live: failingCluster(errAPI), err: errAPI},
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		if out.SkipRestore && (len(out.logged) != 1 || !strings.Contains(out.logged[0], "[KeptAsLive]")) {
			t.Errorf("a skipped item needs a warning; got %v", out.logged)
		}

		return want{Skip: out.SkipRestore, Op: out.OperationID}
	})
}

func TestAdoptLeavesAlone(t *testing.T) {
	for name, item := range map[string]*unstructured.Unstructured{
		"FreeMR":         xptest.MR("b"),
		"Secret":         xptest.Secret("s", xptest.Field("Opaque", "type"), xptest.ControlledBy(xptest.XR("x"))),
		"Composition":    xptest.Composition("orders", xptest.XR("x")),
		"Definition":     xptest.ManagedDefinition("buckets", xptest.MR("b"), xptest.ControlledBy(xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p"))),
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
	c := live(x)
	a := newAdopt(c, Shared{})
	for range 2 {
		for _, item := range []*unstructured.Unstructured{
			xptest.MR("b", xptest.ControlledBy(x)), xptest.MR("c"), xptest.XR("y"), xptest.Object("example.org/v1", "T", "a", "t"),
		} {
			execute(t, a, item, restoreOf(nil))
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
	odd := restoreOf(nil)
	odd.Annotations = map[string]string{"velero.crossplane.io/clone": "maybe"}
	type want struct {
		Quarantined, Failed bool
	}
	holds := want{Quarantined: true, Failed: true}
	runAdopts(t, map[string]adoptCase[want]{
		"Annotation": {reason: "It must not look as if it counted.", item: xptest.XR("x"), restore: odd, want: holds},
		"ConfigMap":  {reason: "It must not look as if it counted.", item: xptest.XR("x"), config: map[string]string{"clone": ""}, want: holds},
		"Several":    {reason: "Nobody knows which counts.", item: xptest.XR("x"), live: &cluster{configErr: setting.InvalidError{Err: errAPI}}, want: holds},
		"API":        {reason: "Velero tries it again.", item: xptest.XR("x"), live: &cluster{configErr: errAPI}, err: errAPI},
		"Other":      {reason: "An object outside Crossplane must not fail for it.", item: xptest.Object("example.org/v1", "Thing", "team-a", "t"), live: &cluster{configErr: errAPI}},
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		h := out.hold(t)
		if out.failed && !strings.HasSuffix(out.note, "release --restore velero/monday [HeldForSettings]") {
			t.Errorf("the note must name the next step: %s", out.note)
		}

		return want{Quarantined: h != nil && h.Quarantine, Failed: out.failed}
	})
}

// A restore has thousands of items.
func TestAdoptNotesUnreadableSettingsOnce(t *testing.T) {
	a := newAdopt(&cluster{config: map[string]string{"hold": "al"}}, Shared{})
	for n, name := range []string{"a", "b", "c"} {
		out := execute(t, a, xptest.MR(name), restoreOf(nil))
		if noted := strings.Contains(out.OperationID, noteAfter); noted != (n == 0) {
			t.Errorf("the plugin noted it for %s: %t", name, noted)
		}
	}
}

func TestAdoptHoldsSchedules(t *testing.T) {
	cron := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("ops.crossplane.io/v1alpha1", "CronOperation", "", "nightly", o...)
	}
	watch := xptest.Object("ops.crossplane.io/v1alpha1", "WatchOperation", "", "w", xptest.Annotated(xp.AnnotationPaused, "false"))
	for name, item := range map[string]*unstructured.Unstructured{"Cron": cron(), "Watch": watch} {
		out := adopt(t, live(), item, restoreOf(nil))
		if h := out.hold(t); h == nil || h.Reason == "" || h.Restore != "velero/monday" || h.Pinned || !xp.IsPaused(out.object) || out.OperationID != "" {
			t.Errorf("%s starts Operations, so it must come back paused; got %+v", name, h)
		}
		if len(out.logged) != 1 || !strings.HasSuffix(out.logged[0], "[StartsOperations]") {
			t.Errorf("%s: want one warning; got %v", name, out.logged)
		}
	}
	out := adopt(t, live(), cron(xptest.Annotated(xp.AnnotationPaused, "true")), restoreOf(nil))
	if h := out.hold(t); h != nil || !xp.IsPaused(out.object) || len(out.logged) > 0 {
		t.Errorf("the pause of a user must stay theirs; got %+v, %v", h, out.logged)
	}
}

func TestAdoptRefusesWhatALiveXRDoesNotList(t *testing.T) {
	old, x := xptest.XR("x", xptest.UID("old")), xptest.XR("x", xptest.UID("new"))
	forged := xptest.With(x, xptest.Annotated(hold.Annotation, "?"))
	bucket := xptest.MR("b", xptest.ControlledBy(old))
	uncontrolled := xptest.With(bucket, xptest.Without("metadata", "ownerReferences"),
		xptest.OwnedBy(metav1.OwnerReference{APIVersion: xptest.LegacyVersion, Kind: xptest.LegacyKind, Name: "x"}))
	byLabels := restoreWith(velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}})
	type want struct {
		Skip  bool
		Codes []reason.Code
	}
	ownerless := want{Codes: []reason.Code{reason.RestoredWithoutOwner}}
	runAdopts(t, map[string]adoptCase[want]{
		"Unheld": {
			reason: "Crossplane reconciles the XR without the MR, perhaps with a replacement.", item: bucket, live: live(x),
			want: want{Skip: true, Codes: []reason.Code{reason.NotListed}},
		},
		"Unreadable": {
			reason: "An unreadable mark on a paused XR may be a hold.", item: bucket, live: live(xptest.With(forged, xptest.Annotated(xp.AnnotationPaused, "true"))),
			want: want{Codes: []reason.Code{reason.MarkForged, reason.RestoredWithoutOwner}},
		},
		"Forged": {
			reason: "A forged mark on a reconciled XR does not pause it.", item: bucket, live: live(forged),
			want: want{Skip: true, Codes: []reason.Code{reason.MarkForged, reason.NotListed}},
		},
		"Held":         {reason: "A held XR is as old as the item.", item: bucket, live: live(heldWith(x)), want: ownerless},
		"Deleting":     {reason: "Crossplane composes no replacement for an XR that it deletes.", item: bucket, live: live(xptest.With(x, xptest.Deleting())), want: ownerless},
		"NotComposed":  {reason: "A Secret that is not composed is not in the XR's list.", item: xptest.Secret("s", xptest.ControlledBy(old)), live: live(x), want: ownerless},
		"NoController": {reason: "An owner that is not the controller did not compose the item.", item: uncontrolled, live: live(x)},
		"Selective":    {reason: "In a restore by labels the XR comes later and adopts the MR.", item: bucket, restore: byLabels, want: want{Codes: []reason.Code{""}}},
		"Absent":       {reason: "Without its XR the MR comes back without an owner.", item: bucket, want: ownerless},
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		if slices.Contains(out.codes, reason.RestoredWithoutOwner) && len(out.object.GetOwnerReferences()) > 0 {
			t.Errorf("a dropped owner must not be written with its old UID: %v", out.object)
		}

		return want{Skip: out.SkipRestore, Codes: out.codes}
	})
}

func updating() *velerov1.Restore {
	r := restoreOf(nil)
	r.Spec.ExistingResourcePolicy = velerov1.PolicyTypeUpdate

	return r
}

// Another writer, such as Git, creates objects while the restore runs. With the policy update Velero
// writes the backup's resourceRefs over an XR that Crossplane has composed anew.
func TestAdoptLeavesWhatIsCreatedMeanwhile(t *testing.T) {
	for _, item := range []*unstructured.Unstructured{
		xptest.XR("x", xptest.Refs(xptest.MR("b"))), xptest.Claim("o", xptest.OfXR(xptest.XR("x"))), xptest.MR("b"), xptest.Secret("s"),
	} {
		c := live()
		c.since = []*unstructured.Unstructured{item}
		if got := adopt(t, c, item, updating()); got.err != nil || !got.SkipRestore {
			t.Errorf("Velero must not write %s over it: %+v", xp.String(item), got)
		}
	}
}

// An object can be created between the action and Velero's write.
func TestAdoptRefusesUpdates(t *testing.T) {
	config := xptest.Object("cloud.example.org/v1beta1", "ProviderConfig", "", "default")
	runAdopts(t, map[string]adoptCase[bool]{
		"XR":       {reason: "The API server must refuse an update of an XR.", item: xptest.XR("x"), restore: updating(), want: true},
		"Claim":    {reason: "The API server must refuse an update of a claim.", item: xptest.Claim("o"), restore: updating(), want: true},
		"FreeMR":   {reason: "The item needs no other change.", item: xptest.MR("b"), restore: updating(), want: true},
		"Secret":   {reason: "The API server must refuse an update of a connection secret.", item: xptest.Secret("s"), restore: updating(), want: true},
		"Composed": {reason: "The API server accepts no status of a ConfigMap or a Deployment with the field.", item: xptest.Object("v1", "ConfigMap", xptest.Namespace, "c", xptest.ControlledBy(xptest.XR("x")), xptest.Labelled(xp.LabelComposite, "x")), restore: updating()},
		"Config":   {reason: "A user decides whether a restore updates a ProviderConfig.", item: config, restore: updating()},
		"None":     {reason: "Velero leaves what exists as it is.", item: xptest.XR("x"), restore: restoreOf(nil)},
	}, func(_ *testing.T, out adopted) bool {
		return out.object != nil && out.object.GetDeletionGracePeriodSeconds() != nil
	})
}
