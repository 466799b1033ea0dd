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
		"Both":      {"It is as well as it was.", xp.TrueConditionsOf(xptest.MR("b", conditions("both"))), xptest.MR("b", conditions("both")), nil},
		"OneLess":   {"It is less well.", xp.TrueConditionsOf(xptest.MR("b", conditions("both"))), xptest.MR("b", conditions("ready")), []string{"Synced"}},
		"OneMore":   {"It is better.", xp.TrueConditionsOf(xptest.MR("b", conditions("ready"))), xptest.MR("b", conditions("both")), nil},
		"New":       {"What was just restored is not well yet.", xp.TrueConditionsOf(xptest.MR("b", conditions("both"))), xptest.MR("b"), []string{"Ready", "Synced"}},
		"Ill":       {"Only True is well.", xp.TrueConditionsOf(xptest.MR("b", conditions("both"))), xptest.MR("b", conditions("ill")), []string{"Ready", "Synced"}},
		"WasIll":    {"Nothing is waited for that was not.", xp.TrueConditionsOf(xptest.MR("b", conditions("ill"))), xptest.MR("b"), nil},
		"Untold":    {"Nobody knows how it was.", xp.UnknownConditions, xptest.MR("b"), nil},
		"Forged":    {"A mark can ask for anything, of its own object.", "Happy", xptest.MR("b", conditions("both")), []string{"Happy"}},
		"NoneBoth":  {"There was nothing to say.", xp.TrueConditionsOf(xptest.MR("b")), xptest.MR("b"), nil},
		"ReadyOnly": {"It was not reconciled.", xp.TrueConditionsOf(xptest.MR("b", conditions("ready"))), xptest.MR("b", conditions("ready")), nil},
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
		t.Errorf("An XR from a backup without this plugin says nothing; got %q", got)
	}
	xp.SetSavedConditions(x, []*unstructured.Unstructured{b, c})
	if diff := cmp.Diff([]xp.TrueConditions{"Ready", "?", "Ready,Synced"}, xp.SavedConditions(x, refs)); diff != "" {
		t.Errorf("In the order of the refs: -want, +got:\n%s", diff)
	}
	mapped := x.DeepCopy()
	xp.MapNamespaces(mapped, map[string]string{xptest.Namespace: "copy"})
	if diff := cmp.Diff([]xp.TrueConditions{"Ready"}, xp.SavedConditions(mapped, []xp.Ref{xp.RefTo(xptest.With(c, xptest.In("copy")))})); diff != "" {
		t.Errorf("What is restored to another namespace is found there: -want, +got:\n%s", diff)
	}
	if !xp.HasBackupMetadata(x) {
		t.Error("It is a note.")
	}
	xp.StripBackupMetadata(x)
	if diff := cmp.Diff(xptest.XR("x"), x); diff != "" {
		t.Errorf("It is on the backup's copy only: -want, +got:\n%s", diff)
	}
	local := xptest.ModernXR("x")
	xp.SetSavedConditions(local, []*unstructured.Unstructured{c})
	moved := xptest.With(local, xptest.In("copy"))
	if diff := cmp.Diff([]xp.TrueConditions{"Ready"}, xp.SavedConditions(moved, []xp.Ref{xp.RefTo(xptest.With(c, xptest.In("copy")))})); diff != "" {
		t.Errorf("What a namespaced XR composes is where the XR is: -want, +got:\n%s", diff)
	}
	xp.SetSavedConditions(local, nil)
	if xp.HasBackupMetadata(local) {
		t.Error("Of nothing there is nothing to say.")
	}
	for name, note := range map[string]any{
		"NotAList": "?", "NotAnObject": []any{"?"}, "NotARef": []any{map[string]any{"conditions": "Ready"}},
		"NoConditions": []any{map[string]any{"apiVersion": "v1", "kind": "K", "name": "n"}},
	} {
		u := xptest.XR("x", xptest.Field(note, "metadata", xp.FieldConditions))
		if got := xp.SavedConditions(u, refs); got != nil {
			t.Errorf("%s: what can't be read is not this plugin's; got %q", name, got)
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
	mr := xptest.MR("b", xptest.ControlledBy(x))
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   []string
	}{
		"XR": {
			reason: "Functions write what they like, and read it again.", want: []string{"address", "zones"},
			object: xptest.XR("x", status(`{"zones":[],"address":"a",`+synced+`,"connectionDetails":{},"claimConditionTypes":[],"lastHandledReconcileAt":"x","crossplane":{}}`)),
		},
		"XR2":          {reason: "The same for Crossplane v2.", object: xptest.ModernXR("x", status(`{"address":"a"}`)), want: []string{"address"}},
		"PlainXR":      {reason: "What Crossplane itself writes it writes anew.", object: xptest.XR("x", status(`{`+synced+`}`))},
		"NewXR":        {reason: "There is none.", object: xptest.XR("x")},
		"MalformedXR":  {reason: "There is none.", object: xptest.XR("x", status(`"?"`))},
		"PausedXR":     {reason: "Nobody reads the conditions of one that nothing composes.", object: xptest.XR("x", status(`{`+paused+`}`))},
		"NestedXR":     {reason: "Crossplane writes its conditions anew.", object: xptest.XR("c", xptest.ControlledBy(x), status(`{`+synced+`,"a":1}`)), want: []string{"a"}},
		"NestedPaused": {reason: "Its parent reads its conditions.", object: xptest.XR("c", xptest.ControlledBy(x), status(`{`+paused+`}`)), want: []string{"conditions"}},
		"Claim":        {reason: "Crossplane copies it from its XR.", object: xptest.Claim("o", status(`{"address":"a"}`))},
		"MR":           {reason: "Its provider writes it anew.", object: xptest.With(mr, status(`{"atProvider":{"id":"x"},`+synced+`}`))},
		"PausedMR": {
			reason: "Its provider does not look at it, and functions do.", want: []string{"atProvider", "conditions"},
			object: xptest.With(mr, status(`{"atProvider":{"id":"x"},`+paused+`}`)),
		},
		"PausedMRAlone": {reason: "No function looks at it.", object: xptest.MR("b", status(`{"atProvider":{"id":"x"},`+paused+`}`))},
		"UpjetMR": {
			reason: "Upjet looks for the external resource where it says.", want: []string{"atProvider"},
			object: xptest.MR("b", xptest.JSON(`{"spec":{"initProvider":{}},"status":{"atProvider":{"zone":"z"},`+synced+`}}`)),
		},
		"NeverCreatedUpjetMR": {reason: "There is nothing to be found.", object: xptest.MR("b", xptest.JSON(`{"spec":{"initProvider":{}},"status":{`+paused+`}}`))},
		"NewMR":               {reason: "There is none.", object: mr},
		"ComposedOther": {
			reason: "What is not Crossplane's has conditions of its own.", object: xptest.Object("example.org/v1", "Cache", "", "c", xptest.ControlledBy(x), status(`{"a":1}`)),
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
		t.Errorf("The list is somebody's: -want, +got:\n%s", diff)
	}
	if got := xp.MissingStatus(xptest.XR("x"), names[:1]); len(got) != 1 {
		t.Errorf("Without a status all is missing; got %v", got)
	}
	if got := xp.StatusNames([]string{"a", "b"}); got != "status.a, status.b" {
		t.Errorf("got %q", got)
	}
}
