package xp_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestRefCompare(t *testing.T) {
	want := []xp.Ref{
		{APIVersion: "a/v1", Kind: "A", Namespace: "a", Name: "a"},
		{APIVersion: "a/v1", Kind: "A", Namespace: "a", Name: "b"},
		{APIVersion: "a/v1", Kind: "A", Namespace: "b", Name: "a"},
		{APIVersion: "a/v1", Kind: "B", Namespace: "a", Name: "a"},
		{APIVersion: "b/v1", Kind: "A", Namespace: "a", Name: "a"},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, xp.Ref.Compare)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the order of Refs is API version, kind, namespace and name: -want, +got:\n%s", diff)
	}
}

func TestCompositeRefs(t *testing.T) {
	type want struct {
		Ref xp.Ref
		OK  bool
	}
	x := want{Ref: xp.Ref{APIVersion: "example.org/v1", Kind: "X", Name: "x"}, OK: true}
	cases := map[string]struct {
		reason string
		spec   string
		want   want
	}{
		"Whole": {reason: "A complete ref names its object.", spec: `{"r":{"apiVersion":"example.org/v1","kind":"X","name":"x"}}`, want: x},
		"NoName": {
			reason: "A ref without a name names nothing.",
			spec:   `{"r":{"apiVersion":"example.org/v1","kind":"X"}}`, want: want{Ref: xp.Ref{APIVersion: "example.org/v1", Kind: "X"}},
		},
		"NoKind":      {reason: "A ref without a kind names nothing.", spec: `{"r":{"apiVersion":"example.org/v1","name":"x"}}`},
		"NameIsList":  {reason: "A malformed ref names nothing.", spec: `{"r":{"apiVersion":"example.org/v1","kind":"X","name":[]}}`},
		"SpecIsFloat": {reason: "A malformed spec names nothing.", spec: `1.5`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := xptest.Object("example.org/v1", "K", "team-a", "o", xptest.JSON(`{"spec":`+tc.spec+`}`))
			if spec, ok := u.Object["spec"].(map[string]any); ok {
				spec["resourceRef"], spec["claimRef"] = spec["r"], spec["r"]
			}
			var claimed, composite want
			claimed.Ref, claimed.OK = xp.CompositeFrom(u).ClaimRef()
			composite.Ref, composite.OK = xp.ClaimFrom(u).CompositeRef()
			if diff := cmp.Diff([]want{tc.want, tc.want}, []want{claimed, composite}); diff != "" {
				t.Errorf("%s\nClaimRef and CompositeRef: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOwners(t *testing.T) {
	u := xptest.NamespacedMR("b", xptest.OwnedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "helper"}), xptest.ControlledBy(xptest.XRV2("x")))
	want := []xp.Ref{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "team-a", Name: "helper"},
		{APIVersion: xptest.ModernVersion, Kind: xptest.ModernKind, Namespace: "team-a", Name: "x"},
	}
	if diff := cmp.Diff(want, xp.Owners(u)); diff != "" {
		t.Errorf("all owners come first, the controller and others: -want, +got:\n%s", diff)
	}
	if got := xp.Owners(xptest.MR("b")); got != nil {
		t.Errorf("an object without owners has none; got %v", got)
	}
}

func TestUses(t *testing.T) {
	bucket := func(namespace string) xp.Ref {
		return xp.Ref{APIVersion: "c.org/v1", Kind: "Bucket", Namespace: namespace, Name: "b"}
	}
	const of = `"of":{"apiVersion":"c.org/v1","kind":"Bucket","resourceRef":{"name":"b"}}`
	const by = `"by":{"apiVersion":"v1","kind":"ConfigMap","resourceRef":{"name":"c"}}`
	cases := map[string]struct {
		reason    string
		namespace string
		spec      string
		want      []xp.Ref
	}{
		"Both": {
			reason: "A Usage names the used object and its user.",
			spec:   of + "," + by, want: []xp.Ref{bucket(""), {APIVersion: "v1", Kind: "ConfigMap", Name: "c"}},
		},
		"Namespaced": {reason: "A namespaced Usage protects an object in its own namespace.", namespace: "team-a", spec: of, want: []xp.Ref{bucket("team-a")}},
		"Elsewhere": {
			reason:    "The ref can name another namespace; the caller decides whether to follow it.",
			namespace: "team-a",
			spec:      `"of":{"apiVersion":"c.org/v1","kind":"Bucket","resourceRef":{"name":"b","namespace":"team-b"}}`,
			want:      []xp.Ref{bucket("team-b")},
		},
		"Selector": {
			reason: "Crossplane has not resolved the selector yet, so it names nothing.",
			spec:   `"of":{"apiVersion":"c.org/v1","kind":"Bucket","resourceSelector":{}}`,
		},
		"NoKind": {reason: "Crossplane can't look up a ref without a kind.", spec: `"of":{"resourceRef":{"name":"b"}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := xptest.Object("protection.crossplane.io/v1beta1", "Usage", tc.namespace, "u", xptest.JSON(`{"spec":{`+tc.spec+`}}`))
			if diff := cmp.Diff(tc.want, xp.Uses(u)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMapNamespaces(t *testing.T) {
	x := func(document string) *unstructured.Unstructured { return xptest.XR("x", xptest.JSON(document)) }
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, *unstructured.Unstructured]{
		"ClaimRef": {
			Reason: "The claim moves to the other namespace, and so does the label with its namespace.",
			In:     x(`{"metadata":{"labels":{"crossplane.io/claim-namespace":"a","l":"a"}},"spec":{"claimRef":{"kind":"C","name":"c","namespace":"a"}}}`),
			Want:   x(`{"metadata":{"labels":{"crossplane.io/claim-namespace":"copy","l":"a"}},"spec":{"claimRef":{"kind":"C","name":"c","namespace":"copy"}}}`),
		},
		"ResourceRefs": {
			Reason: "Refs to namespaces that the restore does not map stay.",
			In:     x(`{"spec":{"crossplane":{"resourceRefs":[{"name":"b","namespace":"a"},{"name":"b","namespace":"b"},{"name":"c"},7]}}}`),
			Want:   x(`{"spec":{"crossplane":{"resourceRefs":[{"name":"b","namespace":"copy"},{"name":"b","namespace":"b"},{"name":"c"},7]}}}`),
		},
		"Secrets": {
			Reason: "An MR publishes in one Secret and reads another.",
			In:     x(`{"spec":{"writeConnectionSecretToRef":{"name":"s","namespace":"a"},"forProvider":{"passwordSecretRef":{"key":"k","namespace":"a"}}}}`),
			Want:   x(`{"spec":{"writeConnectionSecretToRef":{"name":"s","namespace":"copy"},"forProvider":{"passwordSecretRef":{"key":"k","namespace":"copy"}}}}`),
		},
		"Usage": {
			Reason: "A Usage names the used object by name and by selector.",
			In:     x(`{"spec":{"of":{"resourceRef":{"namespace":"a"},"resourceSelector":{"namespace":"a"}}}}`),
			Want:   x(`{"spec":{"of":{"resourceRef":{"namespace":"copy"},"resourceSelector":{"namespace":"copy"}}}}`),
		},
		"Object": {
			Reason: "The manifest of a provider-kubernetes Object is its external resource and stays; its references move.",
			In: x(`{"spec":{"forProvider":{"manifest":{"metadata":{"namespace":"a"},"spec":{"xRef":{"namespace":"a"}}}},
				"references":[{"dependsOn":{"namespace":"a"},"patchesFrom":{"namespace":"a"}}]}}`),
			Want: x(`{"spec":{"forProvider":{"manifest":{"metadata":{"namespace":"a"},"spec":{"xRef":{"namespace":"a"}}}},
				"references":[{"dependsOn":{"namespace":"copy"},"patchesFrom":{"namespace":"copy"}}]}}`),
		},
		"Fields": {
			Reason: "A namespace outside of a reference can be anything, such as a namespace of metrics.",
			In:     x(`{"spec":{"forProvider":{"namespace":"a","alarm":{"namespace":"a"},"alarms":[{"namespace":"a"}]}},"status":{"xRef":{"namespace":"a"}}}`),
			Want:   x(`{"spec":{"forProvider":{"namespace":"a","alarm":{"namespace":"a"},"alarms":[{"namespace":"a"}]}},"status":{"xRef":{"namespace":"a"}}}`),
		},
		"UnresolvedInANamespace": {
			Reason: "A namespaced XR composes in its own namespace, so the namespaces in its refs don't matter.",
			In:     x(`{"metadata":{"namespace":"a","velero.crossplane.io/unresolved-refs":[{"name":"b","namespace":"a"}]}}`),
			Want:   x(`{"metadata":{"namespace":"a","velero.crossplane.io/unresolved-refs":[{"name":"b","namespace":"a"}]}}`),
		},
		"NoNamespace": {
			Reason: "A reference without a namespace stays so, even if the mapping has an empty name.",
			In:     x(`{"metadata":{"labels":{"crossplane.io/claim-namespace":""}},"spec":{"aRef":{"name":"b"},"bRef":{"namespace":""},"claimRef":{"namespace":"a"}}}`),
			Want:   x(`{"metadata":{"labels":{"crossplane.io/claim-namespace":""}},"spec":{"aRef":{"name":"b"},"bRef":{"namespace":""},"claimRef":{"namespace":"copy"}}}`),
		},
		"NoLabels": {Reason: "The mapping creates no label.", In: x(`{"metadata":{},"spec":{"claimRef":{"name":"c"}}}`), Want: x(`{"spec":{"claimRef":{"name":"c"}}}`)},
	}, func(in *unstructured.Unstructured) *unstructured.Unstructured {
		xp.MapNamespaces(in, map[string]string{"a": "copy", "": "nowhere"})

		return in
	})
}

// FuzzMapNamespaces checks that only mapped namespaces change, without a panic.
func FuzzMapNamespaces(f *testing.F) {
	f.Add(`{"metadata":{"labels":{"crossplane.io/claim-namespace":"a"},"velero.crossplane.io/unresolved-refs":[{"namespace":"a"}]},"spec":{"claimRef":{"namespace":"a"}}}`)
	f.Add(`{"spec":{"crossplane":{"resourceRefs":[{"namespace":"a"},null,7,[{"namespace":"a"}]]},"forProvider":{"manifest":{"xRef":{"namespace":"a"}}}}}`)
	f.Add(`{"spec":[],"metadata":{"labels":{"crossplane.io/claim-namespace":1},"velero.crossplane.io/unresolved-refs":{"namespace":"a"}}}`)
	f.Fuzz(func(t *testing.T, document string) {
		var object map[string]any
		if json.Unmarshal([]byte(document), &object) != nil {
			t.Skip()
		}
		before := decoded(t, object)
		after := before.DeepCopy()
		xp.MapNamespaces(after, nil)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("no namespace is mapped, but the object changed:\n%s", diff)
		}
		xp.MapNamespaces(after, map[string]string{"a": "copy", "": "nowhere"})
		checkMapped(t, before.Object, after.Object)
	})
}

// checkMapped fails if after differs from before in anything but a namespace "a" that is now
// "copy".
func checkMapped(t *testing.T, before, after any) {
	t.Helper()
	switch b := before.(type) {
	case map[string]any:
		a, ok := after.(map[string]any)
		if !ok || len(a) != len(b) {
			t.Fatalf("%v became %v", before, after)
		}
		for key, value := range b {
			namespace := key == "namespace" || key == xp.LabelClaimNamespace
			if namespace && value == "a" && a[key] == "copy" {
				continue
			}
			checkMapped(t, value, a[key])
		}
	case []any:
		a, ok := after.([]any)
		if !ok || len(a) != len(b) {
			t.Fatalf("%v became %v", before, after)
		}
		for i := range b {
			checkMapped(t, b[i], a[i])
		}
	default:
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the change is not only a namespace: %s", diff)
		}
	}
}
