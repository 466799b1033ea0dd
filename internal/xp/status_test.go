package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// conditions takes a list of "Type=Status".
func conditions(of string) xptest.Option {
	documents := map[string]string{
		"":      `[]`,
		"both":  `[{"type":"Synced","status":"True"},{"type":"Other","status":"True"},{"type":"Ready","status":"True"}]`,
		"ready": `[{"type":"Ready","status":"True"},{"type":"Synced","status":"False"}]`,
		"ill":   `[{"type":"Ready","status":"Unknown"},{"type":"Synced"}]`,
	}

	return xptest.JSON(`{"status":{"conditions":` + documents[of] + `}}`)
}

func TestTrueConditions(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		was    xp.TrueConditions
		now    *unstructured.Unstructured
		lacks  []string
	}{
		"Both":       {"The live object has all conditions of the backup.", xp.TrueConditionsOf(xptest.MR("b", conditions("both"))), xptest.MR("b", conditions("both")), nil},
		"OneLess":    {"The live object lacks one condition of the backup.", xp.TrueConditionsOf(xptest.MR("b", conditions("both"))), xptest.MR("b", conditions("ready")), []string{"Synced"}},
		"OneMore":    {"The live object may have more conditions than the backup.", xp.TrueConditionsOf(xptest.MR("b", conditions("ready"))), xptest.MR("b", conditions("both")), nil},
		"New":        {"A newly restored object is not ready yet.", xp.TrueConditionsOf(xptest.MR("b", conditions("both"))), xptest.MR("b"), []string{"Ready", "Synced"}},
		"NotTrue":    {"Only the status True counts.", xp.TrueConditionsOf(xptest.MR("b", conditions("both"))), xptest.MR("b", conditions("ill")), []string{"Ready", "Synced"}},
		"WasNotTrue": {"A condition that was not True in the backup is not required.", xp.TrueConditionsOf(xptest.MR("b", conditions("ill"))), xptest.MR("b"), nil},
		"Unknown":    {"Without saved conditions nothing is required.", xp.UnknownConditions, xptest.MR("b"), nil},
		"Forged":     {"A mark can require any condition, but only of its own object.", "Happy", xptest.MR("b", conditions("both")), []string{"Happy"}},
		"NoneBoth":   {"The backup has no conditions.", xp.TrueConditionsOf(xptest.MR("b")), xptest.MR("b"), nil},
		"ReadyOnly":  {"The backed-up object was not Synced.", xp.TrueConditionsOf(xptest.MR("b", conditions("ready"))), xptest.MR("b", conditions("ready")), nil},
	} {
		if diff := cmp.Diff(tc.lacks, tc.was.Missing(tc.now)); diff != "" && (len(tc.lacks) > 0 || len(tc.was.Missing(tc.now)) > 0) {
			t.Errorf("%s: %s\n-want, +got:\n%s", name, tc.reason, diff)
		}
	}
}

func TestSavedConditions(t *testing.T) {
	b, c, gone := xptest.MR("b", conditions("both")), xptest.NamespacedMR("c", conditions("ready")), xptest.MR("gone")
	refs := []xp.Ref{xp.RefTo(c), xp.RefTo(gone), xp.RefTo(b)}
	x := xptest.XR("x")
	if got := xp.SavedConditions(x, refs); got != nil {
		t.Errorf("an XR from a backup without this plugin has no conditions; got %q", got)
	}
	xp.SetSavedConditions(x, []*unstructured.Unstructured{b, c})
	if diff := cmp.Diff([]xp.TrueConditions{"Ready", "?", "Ready,Synced"}, xp.SavedConditions(x, refs)); diff != "" {
		t.Errorf("the conditions must have the order of the refs: -want, +got:\n%s", diff)
	}
	mapped := x.DeepCopy()
	xp.MapNamespaces(mapped, map[string]string{xptest.Namespace: "copy"})
	if diff := cmp.Diff([]xp.TrueConditions{"Ready"}, xp.SavedConditions(mapped, []xp.Ref{xp.RefTo(xptest.With(c, xptest.In("copy")))})); diff != "" {
		t.Errorf("the mapped namespace must find its conditions: -want, +got:\n%s", diff)
	}
	if !xp.HasBackupMetadata(x) {
		t.Error("the conditions must count as backup metadata")
	}
	xp.StripBackupMetadata(x)
	if diff := cmp.Diff(xptest.XR("x"), x); diff != "" {
		t.Errorf("only the backup's copy has the conditions: -want, +got:\n%s", diff)
	}
	local := xptest.XRV2("x")
	xp.SetSavedConditions(local, []*unstructured.Unstructured{c})
	moved := xptest.With(local, xptest.In("copy"))
	if diff := cmp.Diff([]xp.TrueConditions{"Ready"}, xp.SavedConditions(moved, []xp.Ref{xp.RefTo(xptest.With(c, xptest.In("copy")))})); diff != "" {
		t.Errorf("a namespaced XR composes in its own namespace: -want, +got:\n%s", diff)
	}
	xp.SetSavedConditions(local, nil)
	if xp.HasBackupMetadata(local) {
		t.Error("an empty list must write no field")
	}
	for name, note := range map[string]any{
		"NotAList": "?", "NotAnObject": []any{"?"}, "NotARef": []any{map[string]any{"conditions": "Ready"}},
	} {
		u := xptest.XR("x", xptest.Field(note, "metadata", xp.FieldConditions))
		if got := xp.SavedConditions(u, refs); got != nil {
			t.Errorf("%s: this plugin did not write the malformed field; got %q", name, got)
		}
	}
}

func TestNeededStatus(t *testing.T) {
	x := xptest.XR("x")
	status := func(document string) xptest.Option { return xptest.JSON(`{"status":` + document + `}`) }
	const (
		synced = `"conditions":[{"type":"Synced","status":"True"}]`
		paused = `"conditions":[{"type":"Synced","status":"False","reason":"ReconcilePaused"}]`
	)
	mr, byUser := xptest.MR("b", xptest.ControlledBy(x)), xptest.Annotated(xp.AnnotationPaused, "true")
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   []string
	}{
		"XR": {
			reason: "Functions write any status fields and read them again.", want: []string{"address", "zones"},
			object: xptest.XR("x", status(`{"zones":[],"address":"a",`+synced+`,"connectionDetails":{},"claimConditionTypes":[],"lastHandledReconcileAt":"x","crossplane":{}}`)),
		},
		"XRPausedByUser": {
			reason: "Nobody writes the status of what its user has paused.", want: []string{"address", "conditions", "connectionDetails"},
			object: xptest.XRV2("x", byUser, status(`{"address":"a",`+paused+`,"connectionDetails":{}}`)),
		},
		"ClaimPausedByUser": {reason: "Nobody does so of a claim either.", object: xptest.Claim("o", byUser, status(`{"address":"a",`+synced+`}`)), want: []string{"address", "conditions"}},
		"MRPausedByUser": {
			reason: "Its provider has not reported the pause yet, and never will again.", want: []string{"atProvider", "conditions"},
			object: xptest.MR("b", byUser, status(`{"atProvider":{"id":"x"},`+synced+`}`)),
		},
		"MRWithoutPolicies": {
			reason: "Empty managementPolicies pause an MR too.", want: []string{"atProvider", "conditions"},
			object: xptest.MR("b", xptest.Field([]any{}, "spec", "managementPolicies"), status(`{"atProvider":{"id":"x"},`+synced+`}`)),
		},
		"OtherPausedByUser": {reason: "Only Crossplane and providers heed the annotation.", object: xptest.Object("v1", "ConfigMap", "team-a", "c", byUser, status(`{"a":1}`))},
		"NotPausedByUser":   {reason: `Only "true" pauses.`, object: xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "yes"), status(`{`+synced+`}`))},
		"XR2":               {reason: "Functions do so with Crossplane v2 too.", object: xptest.XRV2("x", status(`{"address":"a"}`)), want: []string{"address"}},
		"PlainXR":           {reason: "Crossplane writes its own fields again.", object: xptest.XR("x", status(`{`+synced+`}`))},
		"NewXR":             {reason: "A new XR has no status.", object: xptest.XR("x")},
		"MalformedXR":       {reason: "A malformed status has no fields.", object: xptest.XR("x", status(`"?"`))},
		"PausedXR":          {reason: "No parent reads the conditions of a root XR.", object: xptest.XR("x", status(`{`+paused+`}`))},
		"NestedXR":          {reason: "Crossplane writes the conditions again.", object: xptest.XR("c", xptest.ControlledBy(x), status(`{`+synced+`,"a":1}`)), want: []string{"a"}},
		"NestedPaused":      {reason: "The parent XR reads the conditions of a paused nested XR.", object: xptest.XR("c", xptest.ControlledBy(x), status(`{`+paused+`}`)), want: []string{"conditions"}},
		"Claim":             {reason: "Crossplane copies the status of a claim from its XR.", object: xptest.Claim("o", status(`{"address":"a"}`))},
		"MR":                {reason: "The provider writes the status again.", object: xptest.With(mr, status(`{"atProvider":{"id":"x"},`+synced+`}`))},
		"PausedMR": {
			reason: "The provider ignores a paused MR, but functions read its status.", want: []string{"atProvider", "conditions"},
			object: xptest.With(mr, status(`{"atProvider":{"id":"x"},`+paused+`}`)),
		},
		"PausedMRAlone": {reason: "No function reads the status of an MR outside of a tree.", object: xptest.MR("b", status(`{"atProvider":{"id":"x"},`+paused+`}`))},
		"UpjetMR": {
			reason: "Upjet finds the external resource with fields of its status.", want: []string{"atProvider"},
			object: xptest.MR("b", xptest.JSON(`{"spec":{"initProvider":{}},"status":{"atProvider":{"zone":"z"},`+synced+`}}`)),
		},
		"NeverCreatedUpjetMR": {reason: "An external resource that was never created needs no status.", object: xptest.MR("b", xptest.JSON(`{"spec":{"initProvider":{}},"status":{`+paused+`}}`))},
		"NewMR":               {reason: "A new MR has no status.", object: mr},
		"ComposedOther": {
			reason: "Other controllers have conditions of their own.", object: xptest.Object("example.org/v1", "Cache", "", "c", xptest.ControlledBy(x), status(`{"a":1}`)),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := xp.NeededStatus(tc.object)
			if diff := cmp.Diff(tc.want, got); diff != "" && (len(tc.want) > 0 || len(got) > 0) {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMissingStatus(t *testing.T) {
	u := xptest.XR("x", xptest.JSON(`{"status":{"a":0,"b":[]}}`))
	names := []string{"c", "a", "b", "d"}
	if diff := cmp.Diff([]string{"c", "d"}, xp.MissingStatus(u, names)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"c", "a", "b", "d"}, names); diff != "" {
		t.Errorf("the caller owns the list: -want, +got:\n%s", diff)
	}
	if got := xp.MissingStatus(xptest.XR("x"), names[:1]); len(got) != 1 {
		t.Errorf("without a status all fields are missing; got %v", got)
	}
	if got := xp.StatusNames([]string{"a", "b"}); got != "status.a, status.b" {
		t.Errorf("got %q", got)
	}
}
