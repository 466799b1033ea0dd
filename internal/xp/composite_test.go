package xp_test

import (
	"strings"
	"testing"

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
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, want]{
		"V2": {
			Reason: "Crossplane v2 keeps its fields in spec.crossplane.",
			In:     xptest.XRV2("a", xptest.Policy("Manual")),
			Want: want{
				Policy: "Manual", PolicySet: true, Revision: xptest.RevisionName, Composition: xptest.CompositionName,
				Field: map[string]any{"spec": map[string]any{"crossplane": map[string]any{"f": "v"}}},
			},
		},
		"V1WithAFieldOfThatName": {
			Reason: "A v1 XRD may define a field called crossplane, and this does not hide Crossplane's own fields.",
			In:     xptest.XR("a", xptest.Field(map[string]any{"version": "1"}, "spec", "crossplane")),
			Want: want{
				Revision: xptest.RevisionName, Composition: xptest.CompositionName,
				Field: map[string]any{"spec": map[string]any{"f": "v"}},
			},
		},
		"WrongTypes": {
			Reason: "Fields of the wrong type count as not set.",
			In: xptest.Object("example.org/v1", "Order", "", "a", xptest.JSON(
				`{"spec":{"compositionUpdatePolicy":1,"compositionRevisionRef":[],"compositionRef":{"name":{}}}}`)),
			Want: want{Field: map[string]any{"spec": map[string]any{"f": "v"}}},
		},
	}, func(in *unstructured.Unstructured) want {
		i := xp.Instance{Unstructured: in}
		got := want{Revision: i.Revision(), Composition: i.Composition(), Field: i.Field("f", "v")}
		got.Policy, got.PolicySet = i.UpdatePolicy()

		return got
	})
}

func TestSetUpdatePolicy(t *testing.T) {
	for path, u := range map[string]*unstructured.Unstructured{"spec": xptest.XR("a"), "spec crossplane": xptest.XRV2("a")} {
		err := xp.Instance{Unstructured: u}.SetUpdatePolicy(xp.UpdateManual)
		if got, _, _ := unstructured.NestedString(u.Object, append(strings.Fields(path), "compositionUpdatePolicy")...); err != nil || got != xp.UpdateManual {
			t.Errorf("the schema has the policy in %s: got %q, error %v", path, got, err)
		}
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
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, want]{
		"AnotherNamespace": {
			Reason: "A namespaced XR composes in its own namespace only, so a ref can't reach another one.",
			In: xptest.XRV2("a", xptest.JSON(`{"spec":{"crossplane":{"resourceRefs":[
				{"apiVersion":"c.org/v1","kind":"Bucket","name":"b","namespace":"team-b"}]}}}`)),
			Want: want{Refs: []xp.Ref{in("team-a")}},
		},
		"ClusterScopedComposesAnywhere": {
			Reason: "A cluster-scoped XR composes in the namespaces of its refs.",
			In: xptest.XRV2("a", xptest.Without("metadata", "namespace"), xptest.JSON(`{"spec":{"crossplane":{"resourceRefs":[
				{"apiVersion":"c.org/v1","kind":"Bucket","name":"b","namespace":"team-b"}]}}}`)),
			Want: want{Refs: []xp.Ref{in("team-b")}},
		},
		"OrderAndRepeats": {
			Reason: "The result keeps order and duplicates of the list.",
			In:     xptest.XR("a", xptest.JSON(`{"spec":{"resourceRefs":[{"apiVersion":"v1","kind":"Z","name":"z"},`+one+`,`+one+`]}}`)),
			Want:   want{Refs: []xp.Ref{{APIVersion: "v1", Kind: "Z", Name: "z"}, bucket, bucket}},
		},
		"WithoutName": {
			Reason: "Crossplane skips a ref without a name.",
			In:     xptest.XR("a", xptest.JSON(`{"spec":{"resourceRefs":[{"apiVersion":"v1","kind":"Z"},`+one+`]}}`)), Want: want{Refs: []xp.Ref{bucket}},
		},
	}, func(in *unstructured.Unstructured) want {
		refs, err := xp.CompositeFrom(in).ResourceRefs()

		return want{Refs: refs, Err: message(err)}
	})
}

// A pair is two objects, of which the first owns the second, or may.
type pair [2]*unstructured.Unstructured

func TestBound(t *testing.T) {
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("o-x1")))
	xptest.Run(t, map[string]xptest.Row[pair, bool]{
		"BothWays":     {Reason: "The claim and the XR name each other.", In: pair{claim, xptest.XR("o-x1", xptest.ClaimedBy(claim))}, Want: true},
		"ClaimOnly":    {Reason: "Any tenant can name any XR in a claim.", In: pair{claim, xptest.XR("o-x1")}},
		"XROnly":       {Reason: "A claim without an XR is not bound.", In: pair{xptest.Claim("o"), xptest.XR("o-x1", xptest.ClaimedBy(claim))}},
		"AnotherClaim": {Reason: "The XR belongs to another claim.", In: pair{claim, xptest.XR("o-x1", xptest.ClaimedBy(xptest.Claim("p")))}},
		"SameNameInB": {
			Reason: "A claim of the same name in another namespace is another claim.",
			In:     pair{claim, xptest.XR("o-x1", xptest.ClaimedBy(xptest.Claim("o", xptest.In("team-b"))))},
		},
		"AnotherXR": {Reason: "The claim belongs to another XR.", In: pair{claim, xptest.XR("o-x2", xptest.ClaimedBy(claim))}},
		"EmptyBack": {
			Reason: "A ref without a name names no claim.",
			In:     pair{claim, xptest.XR("o-x1", xptest.JSON(`{"spec":{"claimRef":{"apiVersion":"v1","kind":"K"}}}`))},
		},
		"AnotherVersion": {
			Reason: "A ref keeps the version that was served when it was written.",
			In:     pair{claim, xptest.XR("o-x1", xptest.ClaimedBy(xptest.Claim("o", xptest.JSON(`{"apiVersion":"example.org/v2"}`))))}, Want: true,
		},
	}, func(in pair) bool {
		return xp.Bound(xp.ClaimFrom(in[0]), xp.CompositeFrom(in[1]))
	})
}

func TestControls(t *testing.T) {
	xr := xptest.XR("x")
	xptest.Run(t, map[string]xptest.Row[pair, bool]{
		"Yes": {Reason: "The owner reference has the XR's UID.", In: pair{xr, xptest.MR("b", xptest.ControlledBy(xr))}, Want: true},
		"OldUID": {
			Reason: "An XR with the same name and another UID is another XR.",
			In:     pair{xptest.XR("x", xptest.UID("new")), xptest.MR("b", xptest.ControlledBy(xr))},
		},
		"NoUIDs": {
			Reason: "Two empty UIDs don't make an owner.",
			In:     pair{&unstructured.Unstructured{Object: map[string]any{}}, xptest.MR("b", xptest.JSON(`{"metadata":{"ownerReferences":[{"controller":true}]}}`))},
		},
	}, func(in pair) bool {
		return xp.Controls(in[0], in[1])
	})
}

func message(err error) string {
	if err == nil {
		return ""
	}

	return err.Error()
}
