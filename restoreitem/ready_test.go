package restoreitem

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A conversion is a cluster whose webhook answers from a given time on.
type conversion struct {
	versions    xp.Versions
	versionsErr error
	config      map[string]string
	configErr   error
	now, from   time.Time
	asked       int
}

var errDown = errors.New("conversion webhook for example.org/v1, Kind=Bucket failed: connection refused")

func (c *conversion) Settings(context.Context, string) (map[string]string, error) {
	return c.config, c.configErr
}

func (c *conversion) Versions(context.Context, schema.GroupKind) (xp.Versions, error) {
	return c.versions, c.versionsErr
}

func (c *conversion) Convert(context.Context, *unstructured.Unstructured, string) error {
	c.asked++
	if c.now.Before(c.from) {
		return errDown
	}

	return nil
}

func (c *conversion) readiness() *Readiness {
	r := NewReadiness(c)
	r.now = func() time.Time { return c.now }
	r.sleep = func(d time.Duration) { c.now = c.now.Add(d) }

	return r
}

func TestReadinessCheck(t *testing.T) {
	mr := xptest.MR("b")
	gvk := mr.GroupVersionKind()
	versions := func(stored, webhook string, served ...string) xp.Versions {
		return xp.Versions{Kind: gvk.GroupKind(), Stored: stored, Served: served, Webhook: webhook, Provider: "Provider cloud"}
	}
	both := versions("v9", "Service crossplane-system/cloud", gvk.Version, "v9")
	began := time.Unix(1_700_000_000, 0)
	type want struct {
		Code   reason.Code
		Asked  int
		Waited time.Duration
	}
	for name, tc := range map[string]struct {
		reason  string
		cluster conversion
		want    want
	}{
		"Answers":     {reason: "The webhook answers, so the restore does not wait.", cluster: conversion{versions: both}, want: want{Asked: 1}},
		"Stored":      {reason: "All objects are stored in this version, so the webhook is not needed.", cluster: conversion{versions: versions(gvk.Version, "Service a/b", gvk.Version, "v9")}},
		"NoWebhook":   {reason: "The API server converts without a webhook.", cluster: conversion{versions: versions("v9", "", gvk.Version, "v9")}},
		"NoCRD":       {reason: "An aggregated API server serves the kind.", cluster: conversion{}},
		"OddSettings": {reason: "Another action reports unreadable settings, so the default timeout applies.", cluster: conversion{versions: both, from: began.Add(time.Hour), configErr: errAPI}, want: want{Code: reason.ConversionWebhookDown, Asked: 61, Waited: time.Minute}},
		"Unread":      {reason: "The request that creates the object reports the error.", cluster: conversion{versions: both, versionsErr: errAPI}},
		"Late":        {reason: "The webhook starts to answer while the restore waits.", cluster: conversion{versions: both, from: began.Add(20 * time.Second)}, want: want{Asked: 21, Waited: 20 * time.Second}},
		"Never":       {reason: "The wait must end, so that the restore ends.", cluster: conversion{versions: both, from: began.Add(time.Hour)}, want: want{Code: reason.ConversionWebhookDown, Asked: 61, Waited: time.Minute}},
		"ByConfig":    {reason: "A user can set the timeout.", cluster: conversion{versions: both, from: began.Add(time.Hour), config: map[string]string{"kind-timeout": "3s"}}, want: want{Code: reason.ConversionWebhookDown, Asked: 4, Waited: 3 * time.Second}},
		"NotServed": {
			reason: "The error names the unserved version, since Velero's would not.", cluster: conversion{versions: versions("v9", "", "v9", "v10")},
			want: want{Code: reason.BackupVersionNotServed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := tc.cluster
			c.now = began
			_, err := newOrder(Shared{Ready: c.readiness()}).Execute(inputFor(mr, restoreOf(nil)))
			got := want{Code: reason.CodeOf(err), Asked: c.asked, Waited: c.now.Sub(began)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReadinessWaitsOnce(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	gvk := xptest.MR("b").GroupVersionKind()
	c := &conversion{
		now: began, from: began.Add(100 * time.Second),
		versions: xp.Versions{Kind: gvk.GroupKind(), Stored: "v9", Served: []string{gvk.Version, "v9"}, Webhook: "Service a/b"},
	}
	r := c.readiness()
	log, _ := logtest.NewNullLogger()
	check := func() bool { return r.check(newItem(inputFor(xptest.MR("b"), restoreOf(nil)), log)) == nil }
	got := []any{check(), c.now.Sub(began), check(), c.asked}
	c.now = c.now.Add(webhookTTL)
	got = append(got, check(), c.asked) // Called again without waiting.
	c.now = began.Add(100 * time.Second)
	got = append(got, check(), check(), c.asked)
	if diff := cmp.Diff([]any{false, time.Minute, false, 61, false, 62, true, true, 63}, got); diff != "" {
		t.Errorf("the plugin must wait for a webhook once, not for each item: -want, +got:\n%s", diff)
	}
}

func TestOrderAwaitsTheKind(t *testing.T) {
	const xrd = "xorders.example.org"
	tree := xptest.RestoreFirst(xp.ResourceXRD.String() + "//" + xrd)
	xr, claim := xptest.XR("x", tree), xptest.Claim("o", xptest.OfXR(xptest.XR("x")), tree)
	type want struct {
		Waits, WaitsAgain, Ready bool
		Within                   time.Duration
		Err                      error
	}
	for name, tc := range map[string]struct {
		reason        string
		before, after kindsFn
		item          *unstructured.Unstructured
		want          want
	}{
		"XR":          {reason: "The XR waits until Crossplane serves its kind.", before: unserved, after: served, item: xr, want: want{Waits: true, Ready: true, Within: time.Minute}},
		"Claim":       {reason: "The claim waits until Crossplane serves its kind.", before: unserved, after: served, item: claim, want: want{Waits: true, Ready: true, Within: time.Minute}},
		"NotYet":      {reason: "Velero asks again while the kind is not served.", before: unserved, after: unserved, item: xr, want: want{Waits: true, Within: time.Minute}},
		"Unreachable": {reason: "Velero reports why the kind cannot be checked.", before: unserved, after: failing, item: xr, want: want{Waits: true, Within: time.Minute, Err: errAPI}},
		"Served":      {reason: "The kind is served, so the XR does not wait.", before: served, after: served, item: xr, want: want{Ready: true}},
		"NoXRD":       {reason: "The restore has no XRD for the kind, so waiting is useless.", before: unserved, after: unserved, item: xptest.XR("x"), want: want{Ready: true}},
		"Composed":    {reason: "A composed resource has no XRD.", before: unserved, after: unserved, item: xptest.MR("b", tree), want: want{Ready: true}},
	} {
		t.Run(name, func(t *testing.T) {
			mapper := tc.before
			log, _ := logtest.NewNullLogger()
			o := NewOrder(Crossplane(), kindsFn(func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) { return mapper(gvk) }), log, Shared{})
			out := execute(t, o, tc.item, restoreOf(nil))
			again := execute(t, o, tc.item, restoreOf(nil))
			mapper = tc.after
			ready, err := o.AreAdditionalItemsReady(out.AdditionalItems, nil)
			got := want{Waits: out.WaitForAdditionalItems, WaitsAgain: again.WaitForAdditionalItems, Ready: ready, Within: out.AdditionalItemsReadyTimeout, Err: err}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOrderAwaitsBothKindsOfAnXRD(t *testing.T) {
	tree := xptest.RestoreFirst(xp.ResourceXRD.String() + "//xorders.example.org")
	serves := map[string]bool{}
	mapper := func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
		if !serves[gvk.Kind] {
			return unserved(gvk)
		}

		return served(gvk)
	}
	log, _ := logtest.NewNullLogger()
	o := NewOrder(Crossplane(), kindsFn(mapper), log, Shared{})
	var out *velero.RestoreItemActionExecuteOutput
	for _, u := range []*unstructured.Unstructured{xptest.Claim("o", xptest.OfXR(xptest.XR("x")), tree), xptest.XR("x", tree)} {
		out = execute(t, o, u, restoreOf(nil))
	}
	for _, kind := range []string{xptest.LegacyKind, xptest.ClaimKind} {
		if ready, err := o.AreAdditionalItemsReady(out.AdditionalItems, nil); ready || err != nil {
			t.Errorf("without %s: %v, %v", kind, ready, err)
		}
		serves[kind] = true
	}
	if ready, err := o.AreAdditionalItemsReady(out.AdditionalItems, nil); !ready || err != nil {
		t.Errorf("with both: %v, %v", ready, err)
	}
}

// terminatingXRD returns the XRD of xptest's XRs and claims while it is being deleted.
func terminatingXRD() *unstructured.Unstructured {
	return xptest.XRD("xorders.example.org", xptest.Deleting(), xptest.Finalizers("defined.apiextensions.crossplane.io"),
		xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XOrder"},"claimNames":{"kind":"OrderClaim"}}}`))
}

// An xrdReader has one XRD, or fails.
type xrdReader struct {
	xrd *unstructured.Unstructured
	err error
}

func (r xrdReader) Terminating(_ context.Context, gk schema.GroupKind) (*unstructured.Unstructured, error) {
	if r.err == nil && xp.Defines(r.xrd, gk) {
		return r.xrd, nil
	}

	return nil, r.err
}

func xrdCheckOf(xrd *unstructured.Unstructured, err error) *XRDCheck {
	return NewXRDCheck(xrdReader{xrd, err})
}

// checkRefused runs both actions on an item, as Velero does, and checks that each refuses it or
// neither does.
func checkRefused(t *testing.T, reason string, d *XRDCheck, item *unstructured.Unstructured, refused string) {
	t.Helper()
	log, _ := logtest.NewNullLogger()
	first, err := NewOrder(Crossplane(), kindsFn(served), log, Shared{XRDs: d}).Execute(inputFor(item, restoreOf(nil)))
	_, again := NewAdopt(Crossplane(), live(), nil, log, Shared{XRDs: d}).Execute(inputFor(item, restoreOf(nil)))
	for name, err := range map[string]error{"1-order": err, "2-adopt": again} {
		switch {
		case refused == "" && err != nil:
			t.Errorf("%s\n%s must not refuse %s: %v", reason, name, xp.String(item), err)
		case refused != "" && (err == nil || !strings.Contains(err.Error(), refused)):
			t.Errorf("%s\n%s must refuse %s with %q; got error %v", reason, name, xp.String(item), refused, err)
		}
	}
	if refused != "" && first != nil {
		t.Errorf("%s\nwant no item before it; got %+v", reason, first)
	}
}

func TestXRDCheck(t *testing.T) {
	const xrd = "its XRD xorders.example.org is being deleted"
	x := xptest.XR("x")
	nested := xptest.Object("example.org/v1alpha1", "XPart", "", "p", xptest.Finalizers(xp.FinalizerComposite), xptest.ControlledBy(x))
	for name, tc := range map[string]struct {
		reason  string
		item    *unstructured.Unstructured
		refused string
	}{
		"XR":       {reason: "Crossplane would delete the XR at once, and its composed resources with it.", item: x, refused: "cannot restore XOrder x: " + xrd},
		"Claim":    {reason: "Crossplane would delete the claim at once.", item: xptest.Claim("o", xptest.OfXR(x)), refused: "cannot restore OrderClaim team-a/o: " + xrd},
		"Composed": {reason: "No XR would look after the composed resource.", item: xptest.MR("b", xptest.ControlledBy(x)), refused: "cannot restore Bucket b, which is composed by an XR of the kind XOrder: " + xrd},
		"XRD":      {reason: "Velero must not write to a terminating XRD.", item: xptest.With(terminatingXRD(), xptest.Without("metadata", "deletionTimestamp")), refused: xrd},
		"OtherXRD": {
			reason: "A terminating XRD does not refuse another XRD.",
			item:   xptest.XRD("xparts.example.org", xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XPart"}}}`)),
		},
		"SameClaims": {
			reason: "Crossplane itself refuses a second XRD with the same claims, so the plugin does not.",
			item: xptest.XRD("xparts.example.org",
				xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XPart"},"claimNames":{"kind":"OrderClaim"}}}`)),
		},
		"Notes": {
			reason: "A newer version of the plugin wrote the backup.", item: xptest.XRV2("m", xptest.Field(int64(2), "metadata", xp.FieldFormat)),
			refused: "cannot restore Order team-a/m: a newer version of this plugin backed it up, in format 2; this version reads up to 1; install that version",
		},
		"Mark": {
			reason: "A newer version of the plugin wrote the mark.", item: xptest.XRV2("m", xptest.Annotated(hold.Annotation, `{"format":2,"restore":7}`)),
			refused: "a newer version of this plugin has written it, in format 2",
		},
		"SameFormat": {reason: "The plugin reads its own format.", item: xptest.XRV2("m", xptest.Field(int64(1), "metadata", xp.FieldFormat))},
		"OtherXR":    {reason: "The XRD of another kind is not terminating.", item: xptest.XRV2("m")},
		"Other":      {reason: "No XR composed this MR.", item: xptest.MR("free")},
		"Composite":  {reason: "A terminating XRD also refuses an XR that another XR composes.", item: nested, refused: "cannot restore XPart p"},
	} {
		t.Run(name, func(t *testing.T) { checkRefused(t, tc.reason, xrdCheckOf(terminatingXRD(), nil), tc.item, tc.refused) })
	}
}

// What a refused XR composes is refused, too, whatever its kind, by each action of the restore.
func TestXRDCheckOfComposedResources(t *testing.T) {
	x := xptest.XR("x")
	child := xptest.XRV2("c", xptest.ControlledBy(x))
	leaf := xptest.NamespacedMR("b", xptest.ControlledBy(child))
	d := xrdCheckOf(terminatingXRD(), nil)
	checkRefused(t, "The plugin has not refused the XR yet.", d, leaf, "")
	checkRefused(t, "An XR of the terminating XRD composes this XR.", d, child, "which is composed by an XR of the kind XOrder")
	checkRefused(t, "The refused XR composes this MR.", d, leaf, "cannot restore Bucket team-a/b: its XR Order c was not restored")
	checkRefused(t, "The refusal continues down the tree.", d, xptest.NamespacedMR("d", xptest.ControlledBy(leaf), xptest.Labelled(xp.LabelComposite, "x")), "its XR Bucket b was not restored")
	checkRefused(t, "Another XR composes this MR.", d, xptest.NamespacedMR("e", xptest.ControlledBy(xptest.XRV2("other"))), "")
}

func TestXRDCheckErrors(t *testing.T) {
	err := errors.New("the API server is on holiday")
	d := xrdCheckOf(nil, err)
	for _, item := range []*unstructured.Unstructured{xptest.XR("x"), xptest.MR("b", xptest.ControlledBy(xptest.XR("x"))), terminatingXRD()} {
		checkRefused(t, "Without an answer from the API server the plugin writes nothing.", d, item, err.Error())
	}
	checkRefused(t, "Without an XRDCheck the plugin refuses nothing.", nil, xptest.XR("x"), "")
}

func TestAppliesTo(t *testing.T) {
	want := velero.ResourceSelector{IncludedResources: []string{"*.*.*", "secrets"}, ExcludedResources: []string{"*.k8s.io", "*.velero.io"}}
	order, _ := NewOrder(Crossplane(), nil, nil, Shared{}).AppliesTo()
	adopt, _ := NewAdopt(Crossplane(), nil, nil, nil, Shared{}).AppliesTo()
	for name, got := range map[string]velero.ResourceSelector{"order": order, "adopt": adopt} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the selector must leave out CRDs, which can exceed a plugin call, and Velero's kinds: -want, +got:\n%s", name, diff)
		}
	}
	if used, composed, runtime := Used().LabelSelector, Composed().LabelSelector, Runtime().LabelSelector; composed != "crossplane.io/composite" ||
		runtime != "!"+composed || used != "crossplane.io/in-use,!"+composed {
		t.Errorf("the actions must split the items between them; got %q, %q and %q", composed, runtime, used)
	}
	for _, selector := range []velero.ResourceSelector{Composed(), Runtime(), Used()} {
		if len(selector.IncludedResources) == 0 {
			t.Error("Velero calls an action without an include list for every item")
		}
	}
}

func TestFilters(t *testing.T) {
	type want struct{ OfNamespaces, Selective, TeamA bool }
	for name, tc := range map[string]struct {
		spec velerov1.RestoreSpec
		want want
	}{
		"All":            {want: want{TeamA: true}},
		"Star":           {spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"*"}}, want: want{TeamA: true}},
		"Glob":           {spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-*"}}, want: want{OfNamespaces: true, TeamA: true}},
		"Another":        {spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-b"}}, want: want{OfNamespaces: true}},
		"Malformed":      {spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"["}}, want: want{OfNamespaces: true}},
		"WithCluster":    {spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, IncludeClusterResources: ptr.To(true)}, want: want{TeamA: true}},
		"WithoutCluster": {spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, IncludeClusterResources: ptr.To(false)}, want: want{OfNamespaces: true, TeamA: true}},
		"Excluded":       {spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-*"}, ExcludedNamespaces: []string{"*-a"}}, want: want{OfNamespaces: true}},
		"OnlyExcluded":   {spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{"team-b"}}, want: want{OfNamespaces: true, TeamA: true}},
		"StarWithout":    {spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"*"}, ExcludedNamespaces: []string{"team-a"}}, want: want{OfNamespaces: true}},
		"Contradiction":  {spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"*"}, ExcludedNamespaces: []string{"*"}}, want: want{OfNamespaces: true}},
		"BadExclusion":   {spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{"team-["}}, want: want{OfNamespaces: true, TeamA: true}},
		"Labels":         {spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}}, want: want{Selective: true, TeamA: true}},
		"OrLabels":       {spec: velerov1.RestoreSpec{OrLabelSelectors: []*metav1.LabelSelector{{}}}, want: want{Selective: true, TeamA: true}},
	} {
		r := restoreWith(tc.spec)
		if diff := cmp.Diff(tc.want, want{OfNamespaces: ofNamespaces(r), Selective: isSelective(r), TeamA: included(r, "team-a")}); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
}
