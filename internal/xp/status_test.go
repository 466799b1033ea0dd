package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
		"NotTrue":    {"Only the status True counts.", xp.TrueConditionsOf(xptest.MR("b", conditions("both"))), xptest.MR("b", conditions("ill")), []string{"Ready", "Synced"}},
		"WasNotTrue": {"A condition that was not True in the backup is not required.", xp.TrueConditionsOf(xptest.MR("b", conditions("ill"))), xptest.MR("b"), nil},
		"Unknown":    {"Without saved conditions nothing is required.", xp.UnknownConditions, xptest.MR("b"), nil},
		"Forged":     {"A mark can require any condition, but only of its own object.", "Happy", xptest.MR("b", conditions("both")), []string{"Happy"}},
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
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, []string]{
		"XR": {
			Reason: "Functions write any status fields and read them again.", Want: []string{"address", "zones"},
			In: xptest.XR("x", status(`{"zones":[],"address":"a",`+synced+`,"connectionDetails":{},"claimConditionTypes":[],"lastHandledReconcileAt":"x","crossplane":{}}`)),
		},
		"XRPausedByUser": {
			Reason: "Nobody writes the status of what its user has paused.", Want: []string{"address", "conditions", "connectionDetails"},
			In: xptest.XRV2("x", byUser, status(`{"address":"a",`+paused+`,"connectionDetails":{}}`)),
		},
		"ClaimPausedByUser": {Reason: "Nobody does so of a claim either.", In: xptest.Claim("o", byUser, status(`{"address":"a",`+synced+`}`)), Want: []string{"address", "conditions"}},
		"MRPausedByUser": {
			Reason: "Its provider has not reported the pause yet, and never will again.", Want: []string{"atProvider", "conditions"},
			In: xptest.MR("b", byUser, status(`{"atProvider":{"id":"x"},`+synced+`}`)),
		},
		"MRWithoutPolicies": {
			Reason: "Empty managementPolicies pause an MR too.", Want: []string{"atProvider", "conditions"},
			In: xptest.MR("b", xptest.Field([]any{}, "spec", "managementPolicies"), status(`{"atProvider":{"id":"x"},`+synced+`}`)),
		},
		"OtherPausedByUser": {Reason: "Only Crossplane and providers heed the annotation.", In: xptest.Object("v1", "ConfigMap", "team-a", "c", byUser, status(`{"a":1}`))},
		"NotPausedByUser":   {Reason: `Only "true" pauses.`, In: xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "yes"), status(`{`+synced+`}`))},
		"PausedXR":          {Reason: "No parent reads the conditions of a root XR.", In: xptest.XR("x", status(`{`+paused+`}`))},
		"NestedXR":          {Reason: "Crossplane writes the conditions again.", In: xptest.XR("c", xptest.ControlledBy(x), status(`{`+synced+`,"a":1}`)), Want: []string{"a"}},
		"NestedPaused":      {Reason: "The parent XR reads the conditions of a paused nested XR.", In: xptest.XR("c", xptest.ControlledBy(x), status(`{`+paused+`}`)), Want: []string{"conditions"}},
		"Claim":             {Reason: "Crossplane copies the status of a claim from its XR.", In: xptest.Claim("o", status(`{"address":"a"}`))},
		"MR":                {Reason: "The provider writes the status again.", In: xptest.With(mr, status(`{"atProvider":{"id":"x"},`+synced+`}`))},
		"PausedMR": {
			Reason: "The provider ignores a paused MR, but functions read its status.", Want: []string{"atProvider", "conditions"},
			In: xptest.With(mr, status(`{"atProvider":{"id":"x"},`+paused+`}`)),
		},
		"PausedMRAlone": {Reason: "No function reads the status of an MR outside of a tree.", In: xptest.MR("b", status(`{"atProvider":{"id":"x"},`+paused+`}`))},
		"UpjetMR": {
			Reason: "Upjet finds the external resource with fields of its status.", Want: []string{"atProvider"},
			In: xptest.MR("b", xptest.JSON(`{"spec":{"initProvider":{}},"status":{"atProvider":{"zone":"z"},`+synced+`}}`)),
		},
		"NeverCreatedUpjetMR": {Reason: "An external resource that was never created needs no status.", In: xptest.MR("b", xptest.JSON(`{"spec":{"initProvider":{}},"status":{`+paused+`}}`))},
		"ComposedOther": {
			Reason: "Other controllers have conditions of their own.", In: xptest.Object("example.org/v1", "Cache", "", "c", xptest.ControlledBy(x), status(`{"a":1}`)),
		},
	}, xp.NeededStatus, cmpopts.EquateEmpty())
}

func TestMissingStatus(t *testing.T) {
	u := xptest.XR("x", xptest.JSON(`{"status":{"a":0,"b":[]}}`))
	names := []string{"c", "a", "b", "d"}
	if diff := cmp.Diff([]string{"c", "d"}, xp.MissingStatus(u, names)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if names[0] != "c" || names[1] != "a" {
		t.Errorf("the caller owns the list; got %v", names)
	}
}
