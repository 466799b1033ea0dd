package xp_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestInstance(t *testing.T) {
	type want struct {
		Policy      string
		PolicySet   bool
		Revision    string
		Composition string
		Field       map[string]any
	}
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   want
	}{
		"V1": {
			reason: "Crossplane v1 keeps its fields in spec.",
			object: xptest.XR("a", xptest.Policy("Automatic")),
			want: want{
				Policy: "Automatic", PolicySet: true, Revision: xptest.RevisionName, Composition: xptest.CompositionName,
				Field: map[string]any{"spec": map[string]any{"f": "v"}},
			},
		},
		"V2": {
			reason: "Crossplane v2 keeps its fields in spec.crossplane.",
			object: xptest.XRV2("a", xptest.Policy("Manual")),
			want: want{
				Policy: "Manual", PolicySet: true, Revision: xptest.RevisionName, Composition: xptest.CompositionName,
				Field: map[string]any{"spec": map[string]any{"crossplane": map[string]any{"f": "v"}}},
			},
		},
		"Claim": {
			reason: "A claim keeps Crossplane's fields in spec, as a v1 XR does.",
			object: xptest.Claim("a"),
			want: want{
				Revision: xptest.RevisionName, Composition: xptest.CompositionName,
				Field: map[string]any{"spec": map[string]any{"f": "v"}},
			},
		},
		"V1WithAFieldOfThatName": {
			reason: "A v1 XRD may define a field called crossplane, and this does not hide Crossplane's own fields.",
			object: xptest.XR("a", xptest.Field(map[string]any{"version": "1"}, "spec", "crossplane")),
			want: want{
				Revision: xptest.RevisionName, Composition: xptest.CompositionName,
				Field: map[string]any{"spec": map[string]any{"f": "v"}},
			},
		},
		"WrongTypes": {
			reason: "Fields of the wrong type count as not set.",
			object: xptest.Object("example.org/v1", "Order", "", "a", xptest.JSON(
				`{"spec":{"compositionUpdatePolicy":1,"compositionRevisionRef":[],"compositionRef":{"name":{}}}}`)),
			want: want{Field: map[string]any{"spec": map[string]any{"f": "v"}}},
		},
		"NoSpec": {
			reason: "An object without a spec has no settings.",
			object: xptest.Object("example.org/v1", "Order", "", "a"),
			want:   want{Field: map[string]any{"spec": map[string]any{"f": "v"}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			i := xp.Instance{Unstructured: tc.object}
			got := want{Revision: i.Revision(), Composition: i.Composition(), Field: i.Field("f", "v")}
			got.Policy, got.PolicySet = i.UpdatePolicy()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSetUpdatePolicy(t *testing.T) {
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		path   []string
		err    string
	}{
		"V1":    {reason: "A v1 XR has the policy in spec.", object: xptest.XR("a"), path: []string{"spec", "compositionUpdatePolicy"}},
		"V2":    {reason: "A v2 XR has the policy in spec.crossplane.", object: xptest.XRV2("a"), path: []string{"spec", "crossplane", "compositionUpdatePolicy"}},
		"Claim": {reason: "A claim has the policy in spec.", object: xptest.Claim("a"), path: []string{"spec", "compositionUpdatePolicy"}},
		"SpecIsNoObject": {
			reason: "The error names the object.",
			object: xptest.Object("example.org/v1", "Order", "team-a", "a", xptest.Field("x", "spec")),
			err:    "cannot set the composition update policy of Order team-a/a: ",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := xp.Instance{Unstructured: tc.object}.SetUpdatePolicy(xp.UpdateManual)
			if tc.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.err) {
					t.Fatalf("%s\ngot error %v, want %q", tc.reason, err, tc.err)
				}

				return
			}
			got, _, _ := unstructured.NestedString(tc.object.Object, tc.path...)
			if diff := cmp.Diff(xp.UpdateManual, got); err != nil || diff != "" {
				t.Errorf("%s\nerror %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestResourceRefs(t *testing.T) {
	bucket := xp.Ref{APIVersion: "c.org/v1", Kind: "Bucket", Name: "b"}
	in := func(namespace string) xp.Ref {
		r := bucket
		r.Namespace = namespace

		return r
	}
	const one = `{"apiVersion":"c.org/v1","kind":"Bucket","name":"b"}`
	type want struct {
		Refs []xp.Ref
		Err  string
	}
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   want
	}{
		"V1": {
			reason: "A v1 XR has the refs in spec.",
			object: xptest.XR("a", xptest.JSON(`{"spec":{"resourceRefs":[`+one+`]}}`)),
			want:   want{Refs: []xp.Ref{bucket}},
		},
		"V2": {
			reason: "A v2 XR has the refs in spec.crossplane and composes in its own namespace.",
			object: xptest.XRV2("a", xptest.JSON(`{"spec":{"crossplane":{"resourceRefs":[`+one+`]}}}`)),
			want:   want{Refs: []xp.Ref{in("team-a")}},
		},
		"AnotherNamespace": {
			reason: "A namespaced XR composes in its own namespace only, so a ref can't reach another one.",
			object: xptest.XRV2("a", xptest.JSON(`{"spec":{"crossplane":{"resourceRefs":[
				{"apiVersion":"c.org/v1","kind":"Bucket","name":"b","namespace":"team-b"}]}}}`)),
			want: want{Refs: []xp.Ref{in("team-a")}},
		},
		"ClusterScopedComposesAnywhere": {
			reason: "A cluster-scoped XR composes in the namespaces of its refs.",
			object: xptest.XRV2("a", xptest.Without("metadata", "namespace"), xptest.JSON(`{"spec":{"crossplane":{"resourceRefs":[
				{"apiVersion":"c.org/v1","kind":"Bucket","name":"b","namespace":"team-b"}]}}}`)),
			want: want{Refs: []xp.Ref{in("team-b")}},
		},
		"OrderAndRepeats": {
			reason: "The result keeps order and duplicates of the list.",
			object: xptest.XR("a", xptest.JSON(`{"spec":{"resourceRefs":[{"apiVersion":"v1","kind":"Z","name":"z"},`+one+`,`+one+`]}}`)),
			want:   want{Refs: []xp.Ref{{APIVersion: "v1", Kind: "Z", Name: "z"}, bucket, bucket}},
		},
		"WithoutName": {
			reason: "Crossplane skips a ref without a name.",
			object: xptest.XR("a", xptest.JSON(`{"spec":{"resourceRefs":[{"apiVersion":"v1","kind":"Z"},`+one+`]}}`)), want: want{Refs: []xp.Ref{bucket}},
		},
		"None":   {reason: "An XR that was never reconciled composes nothing.", object: xptest.XR("a")},
		"Null":   {reason: "A null list has no refs.", object: xptest.XR("a", xptest.Field(nil, "spec", "resourceRefs"))},
		"NoSpec": {reason: "An object without a spec has no refs.", object: xptest.Object("example.org/v1", "Order", "", "a")},
		"SpecIsString": {
			reason: "A spec that is not an object holds no refs.",
			object: xptest.Object("example.org/v1", "Order", "", "a", xptest.Field("x", "spec")),
		},
		"NotAList": {
			reason: "The error names the XR and the wrong type.",
			object: xptest.XR("a", xptest.JSON(`{"spec":{"resourceRefs":"x"}}`)),
			want:   want{Err: "cannot read the resourceRefs of XOrder a: they are a string, not a list"},
		},
		"EntryIsNumber": {
			reason: "JSON decoding yields an int64, and the error names it.",
			object: xptest.XR("a", xptest.JSON(`{"spec":{"resourceRefs":[1]}}`)),
			want:   want{Err: "cannot read resourceRef 0 of XOrder a: it is a int64, not an object"},
		},
		"EntryIsNull": {
			reason: "Null is not a reference.",
			object: xptest.XR("a", xptest.JSON(`{"spec":{"resourceRefs":[`+one+`,null]}}`)),
			want:   want{Err: "cannot read resourceRef 1 of XOrder a: it is a <nil>, not an object"},
		},
		"NameIsNumber": {
			reason: "The error names the field.",
			object: xptest.XR("a", xptest.JSON(`{"spec":{"resourceRefs":[{"apiVersion":"v1","kind":"Z","name":1.5}]}}`)),
			want:   want{Err: "cannot read resourceRef 0 of XOrder a: its name is a float64, not a string"},
		},
		"NoKind": {
			reason: "Crossplane can't look up a ref without a kind.",
			object: xptest.XR("a", xptest.JSON(`{"spec":{"resourceRefs":[{"apiVersion":"v1","name":"z"}]}}`)),
			want:   want{Err: "cannot read resourceRef 0 of XOrder a: it has no apiVersion or no kind"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			refs, err := xp.CompositeFrom(tc.object).ResourceRefs()
			got := want{Refs: refs, Err: message(err)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBound(t *testing.T) {
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("o-x1")))
	cases := map[string]struct {
		reason    string
		claim, xr *unstructured.Unstructured
		want      bool
	}{
		"BothWays":     {reason: "The claim and the XR name each other.", claim: claim, xr: xptest.XR("o-x1", xptest.ClaimedBy(claim)), want: true},
		"ClaimOnly":    {reason: "Any tenant can name any XR in a claim.", claim: claim, xr: xptest.XR("o-x1")},
		"XROnly":       {reason: "A claim without an XR is not bound.", claim: xptest.Claim("o"), xr: xptest.XR("o-x1", xptest.ClaimedBy(claim))},
		"AnotherClaim": {reason: "The XR belongs to another claim.", claim: claim, xr: xptest.XR("o-x1", xptest.ClaimedBy(xptest.Claim("p")))},
		"SameNameInB": {
			reason: "A claim of the same name in another namespace is another claim.",
			claim:  claim, xr: xptest.XR("o-x1", xptest.ClaimedBy(xptest.Claim("o", xptest.In("team-b")))),
		},
		"AnotherXR":     {reason: "The claim belongs to another XR.", claim: claim, xr: xptest.XR("o-x2", xptest.ClaimedBy(claim))},
		"MalformedBack": {reason: "A malformed ref names no claim.", claim: claim, xr: xptest.XR("o-x1", xptest.JSON(`{"spec":{"claimRef":[]}}`))},
		"EmptyBack": {
			reason: "A ref without a name names no claim.",
			claim:  claim, xr: xptest.XR("o-x1", xptest.JSON(`{"spec":{"claimRef":{"apiVersion":"v1","kind":"K"}}}`)),
		},
		"AnotherVersion": {
			reason: "A ref keeps the version that was served when it was written.",
			claim:  claim,
			xr:     xptest.XR("o-x1", xptest.ClaimedBy(xptest.Claim("o", xptest.JSON(`{"apiVersion":"example.org/v2"}`)))), want: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := xp.Bound(xp.ClaimFrom(tc.claim), xp.CompositeFrom(tc.xr)); got != tc.want {
				t.Errorf("%s\nBound: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestControls(t *testing.T) {
	xr := xptest.XR("x")
	cases := map[string]struct {
		reason string
		owner  *unstructured.Unstructured
		object *unstructured.Unstructured
		want   bool
	}{
		"Yes":     {reason: "The owner reference has the XR's UID.", owner: xr, object: xptest.MR("b", xptest.ControlledBy(xr)), want: true},
		"NoOwner": {reason: "The object has no controller.", owner: xr, object: xptest.MR("b")},
		"OldUID": {
			reason: "An XR with the same name and another UID is another XR.",
			owner:  xptest.XR("x", xptest.UID("new")), object: xptest.MR("b", xptest.ControlledBy(xr)),
		},
		"NoUIDs": {
			reason: "Two empty UIDs don't make an owner.",
			owner:  &unstructured.Unstructured{Object: map[string]any{}}, object: xptest.MR("b", xptest.JSON(`{"metadata":{"ownerReferences":[{"controller":true}]}}`)),
		},
		"NotAList": {reason: "A malformed list of owner references has no controller.", owner: xr, object: xptest.MR("b", xptest.JSON(`{"metadata":{"ownerReferences":7}}`))},
		"WrongFields": {
			reason: "An owner reference with wrong types is no controller.",
			owner:  xr, object: xptest.MR("b", xptest.JSON(`{"metadata":{"ownerReferences":[{"uid":1,"controller":"true"}]}}`)),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := xp.Controls(tc.owner, tc.object); got != tc.want {
				t.Errorf("%s\nControls: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}

	return err.Error()
}
