package xp_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestSecretRef(t *testing.T) {
	type want struct {
		Ref xp.Ref
		OK  bool
	}
	secret := func(namespace string) want {
		return want{Ref: xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "s"}, OK: true}
	}
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   want
	}{
		"ClusterScoped": {reason: "A cluster-scoped object names the namespace of the Secret.", object: xptest.MR("b", xptest.PublishesTo("infra", "s")), want: secret("infra")},
		"Namespaced":    {reason: "A namespaced object publishes in its own namespace.", object: xptest.Claim("o", xptest.PublishesTo("", "s")), want: secret("team-a")},
		"Reaches": {
			reason: "A tenant must not reach another namespace.",
			object: xptest.Claim("o", xptest.PublishesTo("infra", "s")), want: secret("team-a"),
		},
		"None": {reason: "The object publishes no Secret.", object: xptest.MR("b")},
		"NoNamespace": {
			reason: "A cluster-scoped object must name a namespace.",
			object: xptest.MR("b", xptest.PublishesTo("", "s")),
		},
		"NotAnObject": {reason: "A malformed reference names no Secret.", object: xptest.MR("b", xptest.JSON(`{"spec":{"writeConnectionSecretToRef":"s"}}`))},
		"WrongTypes": {
			reason: "A name of the wrong type is no name.",
			object: xptest.Claim("o", xptest.JSON(`{"spec":{"writeConnectionSecretToRef":{"name":5}}}`)),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			got.Ref, got.OK = xp.SecretRef(tc.object)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestConditionOf(t *testing.T) {
	type want struct {
		Condition xp.Condition
		OK        bool
	}
	cases := map[string]struct {
		reason string
		status string
		want   want
	}{
		"There": {
			reason: "The first condition of the type counts.",
			status: `{"conditions":[7,null,{"type":"Ready"},{"type":"Synced","status":"False","reason":"R","message":"M"},{"type":"Synced"}]}`,
			want:   want{Condition: xp.Condition{Status: "False", Reason: "R", Message: "M"}, OK: true},
		},
		"Absent":   {reason: "Another type is another condition.", status: `{"conditions":[{"type":"Ready"}]}`},
		"NotAList": {reason: "A malformed list has no conditions.", status: `{"conditions":{"type":"Synced"}}`},
		"NoStatus": {reason: "A new object has no conditions.", status: `null`},
		"WrongTypes": {
			reason: "Fields of the wrong type are empty.",
			status: `{"conditions":[{"type":"Synced","status":true,"reason":1,"message":[]}]}`, want: want{OK: true},
		},
		"Since": {
			reason: "The condition carries the time of its last change.",
			status: `{"conditions":[{"type":"Synced","lastTransitionTime":"2026-01-02T03:04:05Z"}]}`,
			want:   want{Condition: xp.Condition{Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, OK: true},
		},
		"Generation": {
			reason: "Crossplane v2 writes the observed generation.",
			status: `{"conditions":[{"type":"Synced","observedGeneration":3}]}`, want: want{Condition: xp.Condition{Generation: 3}, OK: true},
		},
		"SinceUnreadable": {
			reason: "A time that can't be read counts as no time.", status: `{"conditions":[{"type":"Synced","lastTransitionTime":"now"}]}`, want: want{OK: true},
		},
		"TypeIsMap": {reason: "A comparison with a map or list must not panic.", status: `{"conditions":[{"type":{}},{"type":[]}]}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := xptest.MR("b", xptest.JSON(`{"status":`+tc.status+`}`))
			var got want
			got.Condition, got.OK = xp.ConditionOf(u, xp.ConditionSynced)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIsPaused(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "false": false, "True": false, "": false, "1": false} {
		if got := xp.IsPaused(xptest.MR("b", xptest.Annotated(xp.AnnotationPaused, value))); got != want {
			t.Errorf("Crossplane pauses for the exact value true only.\nIsPaused(%q): got %v, want %v", value, got, want)
		}
	}
	if xp.IsPaused(xptest.MR("b")) {
		t.Error("an object without the annotation is not paused")
	}
}

func TestComposes(t *testing.T) {
	xr := xptest.XR("x")
	cases := map[string]struct {
		reason      string
		composition *unstructured.Unstructured
		want        bool
	}{
		"Yes":         {reason: "The compositeTypeRef names the XR's kind.", composition: xptest.Revision("r", xr), want: true},
		"AnotherKind": {reason: "The Composition is for another kind.", composition: xptest.Revision("r", xptest.Claim("c"))},
		"AnotherGroup": {
			reason:      "A kind of the same name in another group is another kind.",
			composition: xptest.Composition("r", xr, xptest.JSON(`{"spec":{"compositeTypeRef":{"apiVersion":"example.com/v1"}}}`)),
		},
		"AnotherVersion": {
			reason:      "The version in the compositeTypeRef does not matter.",
			composition: xptest.Composition("r", xr, xptest.JSON(`{"spec":{"compositeTypeRef":{"apiVersion":"example.org/v9"}}}`)), want: true,
		},
		"None":       {reason: "An XRD has no compositeTypeRef.", composition: xptest.XRD("r")},
		"WrongTypes": {reason: "A malformed Composition composes no kind.", composition: xptest.Composition("r", xr, xptest.JSON(`{"spec":{"compositeTypeRef":{"kind":1}}}`))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := xp.Composes(tc.composition, xp.CompositeFrom(xr)); got != tc.want {
				t.Errorf("%s\nComposes: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
