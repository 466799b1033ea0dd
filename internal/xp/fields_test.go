package xp_test

import (
	"testing"
	"time"

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
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, want]{
		"ClusterScoped": {Reason: "A cluster-scoped object names the namespace of the Secret.", In: xptest.MR("b", xptest.PublishesTo("infra", "s")), Want: secret("infra")},
		"Reaches":       {Reason: "A tenant must not reach another namespace.", In: xptest.Claim("o", xptest.PublishesTo("infra", "s")), Want: secret("team-a")},
		"NoNamespace":   {Reason: "A cluster-scoped object must name a namespace.", In: xptest.MR("b", xptest.PublishesTo("", "s"))},
		"WrongTypes": {
			Reason: "A name of the wrong type is no name.",
			In:     xptest.Claim("o", xptest.JSON(`{"spec":{"writeConnectionSecretToRef":{"name":5}}}`)),
		},
	}, func(in *unstructured.Unstructured) want {
		ref, ok := xp.SecretRef(in)

		return want{ref, ok}
	})
}

func TestConditionOf(t *testing.T) {
	type want struct {
		Condition xp.Condition
		OK        bool
	}
	xptest.Run(t, map[string]xptest.Row[string, want]{
		"There": {
			Reason: "The first condition of the type counts.",
			In:     `{"conditions":[7,null,{"type":"Ready"},{"type":"Synced","status":"False","reason":"R","message":"M"},{"type":"Synced"}]}`,
			Want:   want{Condition: xp.Condition{Status: "False", Reason: "R", Message: "M"}, OK: true},
		},
		"Absent": {Reason: "Another type is another condition.", In: `{"conditions":[{"type":"Ready"}]}`},
		"WrongTypes": {
			Reason: "Fields of the wrong type are empty.",
			In:     `{"conditions":[{"type":"Synced","status":true,"reason":1,"message":[]}]}`, Want: want{OK: true},
		},
		"Since": {
			Reason: "The condition carries the time of its last change.",
			In:     `{"conditions":[{"type":"Synced","lastTransitionTime":"2026-01-02T03:04:05Z"}]}`,
			Want:   want{Condition: xp.Condition{Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, OK: true},
		},
		"Generation": {
			Reason: "Crossplane v2 writes the observed generation.",
			In:     `{"conditions":[{"type":"Synced","observedGeneration":3}]}`, Want: want{Condition: xp.Condition{Generation: 3}, OK: true},
		},
		"SinceUnreadable": {
			Reason: "A time that can't be read counts as no time.", In: `{"conditions":[{"type":"Synced","lastTransitionTime":"now"}]}`, Want: want{OK: true},
		},
		"TypeIsMap": {Reason: "A comparison with a map or list must not panic.", In: `{"conditions":[{"type":{}},{"type":[]}]}`},
	}, func(in string) want {
		c, ok := xp.ConditionOf(xptest.MR("b", xptest.JSON(`{"status":`+in+`}`)), xp.ConditionSynced)

		return want{c, ok}
	})
}

func TestComposes(t *testing.T) {
	xr := xptest.XR("x")
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, bool]{
		"Yes":         {Reason: "The compositeTypeRef names the XR's kind.", In: xptest.Revision("r", xr), Want: true},
		"AnotherKind": {Reason: "The Composition is for another kind.", In: xptest.Revision("r", xptest.Claim("c"))},
		"AnotherGroup": {
			Reason: "A kind of the same name in another group is another kind.",
			In:     xptest.Composition("r", xr, xptest.JSON(`{"spec":{"compositeTypeRef":{"apiVersion":"example.com/v1"}}}`)),
		},
		"AnotherVersion": {
			Reason: "The version in the compositeTypeRef does not matter.",
			In:     xptest.Composition("r", xr, xptest.JSON(`{"spec":{"compositeTypeRef":{"apiVersion":"example.org/v9"}}}`)), Want: true,
		},
	}, func(in *unstructured.Unstructured) bool {
		return xp.Composes(in, xp.CompositeFrom(xr))
	})
}
