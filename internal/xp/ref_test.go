package xp_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestRef(t *testing.T) {
	type want struct {
		ID     xp.ID
		GVK    schema.GroupVersionKind
		String string
	}
	cases := map[string]struct {
		reason string
		ref    xp.Ref
		want   want
	}{
		"Namespaced": {
			reason: "A message contains the namespace too.",
			ref:    xp.Ref{APIVersion: "c.org/v1", Kind: "Bucket", Namespace: "team-a", Name: "b"},
			want: want{
				ID:     xp.ID{Group: "c.org", Kind: "Bucket", Namespace: "team-a", Name: "b"},
				GVK:    schema.GroupVersionKind{Group: "c.org", Version: "v1", Kind: "Bucket"},
				String: "Bucket team-a/b",
			},
		},
		"Core": {
			reason: "Kubernetes' core group has no name.",
			ref:    xp.Ref{APIVersion: "v1", Kind: "Secret", Name: "s"},
			want:   want{ID: xp.ID{Kind: "Secret", Name: "s"}, GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, String: "Secret s"},
		},
		"Unparsable": {
			reason: "An API version that can't be parsed belongs to no group.",
			ref:    xp.Ref{APIVersion: "a/b/c", Kind: "Bucket", Name: "b"},
			want:   want{ID: xp.ID{Kind: "Bucket", Name: "b"}, GVK: schema.GroupVersionKind{Kind: "Bucket"}, String: "Bucket b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := want{ID: tc.ref.ID(), GVK: tc.ref.GroupVersionKind(), String: tc.ref.String()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRefTo(t *testing.T) {
	u := xptest.NamespacedMR("b")
	want := xp.Ref{APIVersion: xptest.ManagedVersion, Kind: xptest.ManagedKind, Namespace: xptest.Namespace, Name: "b"}
	if diff := cmp.Diff(want, xp.RefTo(u)); diff != "" {
		t.Errorf("RefTo: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff("Bucket team-a/b", xp.String(u)); diff != "" {
		t.Errorf("String: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(xp.Ref{}, xp.RefTo(&unstructured.Unstructured{})); diff != "" {
		t.Errorf("an object without content has an empty Ref: -want, +got:\n%s", diff)
	}
}

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
		"Whole":      {reason: "A complete ref names its object.", spec: `{"r":{"apiVersion":"example.org/v1","kind":"X","name":"x"}}`, want: x},
		"MoreFields": {reason: "Unknown fields have no effect.", spec: `{"r":{"apiVersion":"example.org/v1","kind":"X","name":"x","uid":7}}`, want: x},
		"NoName": {
			reason: "A ref without a name names nothing.",
			spec:   `{"r":{"apiVersion":"example.org/v1","kind":"X"}}`, want: want{Ref: xp.Ref{APIVersion: "example.org/v1", Kind: "X"}},
		},
		"NoKind":      {reason: "A ref without a kind names nothing.", spec: `{"r":{"apiVersion":"example.org/v1","name":"x"}}`},
		"NameIsList":  {reason: "A malformed ref names nothing.", spec: `{"r":{"apiVersion":"example.org/v1","kind":"X","name":[]}}`},
		"Null":        {reason: "Null names nothing.", spec: `{"r":null}`},
		"String":      {reason: "A string names nothing.", spec: `{"r":"x"}`},
		"SpecIsFloat": {reason: "A malformed spec names nothing.", spec: `1.5`},
		"NoSpec":      {reason: "No spec names nothing.", spec: `null`},
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
		"Alone":      {reason: "A Usage can have a reason instead of a user.", spec: of + `,"reason":"x"`, want: []xp.Ref{bucket("")}},
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
		"WrongTypes": {reason: "A malformed ref names nothing.", spec: `"of":{"apiVersion":"c.org/v1","kind":"Bucket","resourceRef":{"name":1}},"by":7`},
		"NoKind":     {reason: "Crossplane can't look up a ref without a kind.", spec: `"of":{"resourceRef":{"name":"b"}}`},
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
	cases := map[string]struct {
		reason       string
		object, want string
	}{
		"ClaimRef": {
			reason: "The claim moves to the other namespace, and so does the label with its namespace.",
			object: `{"metadata":{"labels":{"crossplane.io/claim-namespace":"a","l":"a"}},"spec":{"claimRef":{"kind":"C","name":"c","namespace":"a"}}}`,
			want:   `{"metadata":{"labels":{"crossplane.io/claim-namespace":"copy","l":"a"}},"spec":{"claimRef":{"kind":"C","name":"c","namespace":"copy"}}}`,
		},
		"ResourceRefs": {
			reason: "Refs to namespaces that the restore does not map stay.",
			object: `{"spec":{"crossplane":{"resourceRefs":[{"name":"b","namespace":"a"},{"name":"b","namespace":"b"},{"name":"c"},7]}}}`,
			want:   `{"spec":{"crossplane":{"resourceRefs":[{"name":"b","namespace":"copy"},{"name":"b","namespace":"b"},{"name":"c"},7]}}}`,
		},
		"Secrets": {
			reason: "An MR publishes in one Secret and reads another.",
			object: `{"spec":{"writeConnectionSecretToRef":{"name":"s","namespace":"a"},"forProvider":{"passwordSecretRef":{"key":"k","namespace":"a"}}}}`,
			want:   `{"spec":{"writeConnectionSecretToRef":{"name":"s","namespace":"copy"},"forProvider":{"passwordSecretRef":{"key":"k","namespace":"copy"}}}}`,
		},
		"Usage": {
			reason: "A Usage names the used object by name and by selector.",
			object: `{"spec":{"of":{"resourceRef":{"namespace":"a"},"resourceSelector":{"namespace":"a"}}}}`,
			want:   `{"spec":{"of":{"resourceRef":{"namespace":"copy"},"resourceSelector":{"namespace":"copy"}}}}`,
		},
		"Object": {
			reason: "The manifest of a provider-kubernetes Object is its external resource and stays; its references move.",
			object: `{"spec":{"forProvider":{"manifest":{"metadata":{"namespace":"a"},"spec":{"xRef":{"namespace":"a"}}}},
				"references":[{"dependsOn":{"namespace":"a"},"patchesFrom":{"namespace":"a"}}]}}`,
			want: `{"spec":{"forProvider":{"manifest":{"metadata":{"namespace":"a"},"spec":{"xRef":{"namespace":"a"}}}},
				"references":[{"dependsOn":{"namespace":"copy"},"patchesFrom":{"namespace":"copy"}}]}}`,
		},
		"Fields": {
			reason: "A namespace outside of a reference can be anything, such as a namespace of metrics.",
			object: `{"spec":{"forProvider":{"namespace":"a","alarm":{"namespace":"a"},"alarms":[{"namespace":"a"}]}},"status":{"xRef":{"namespace":"a"}}}`,
			want:   `{"spec":{"forProvider":{"namespace":"a","alarm":{"namespace":"a"},"alarms":[{"namespace":"a"}]}},"status":{"xRef":{"namespace":"a"}}}`,
		},
		"Unresolved": {
			reason: "An unresolved ref must still match its resourceRef.",
			object: `{"metadata":{"velero.crossplane.io/unresolved-refs":[{"name":"b","namespace":"a"}]}}`,
			want:   `{"metadata":{"velero.crossplane.io/unresolved-refs":[{"name":"b","namespace":"copy"}]}}`,
		},
		"UnresolvedInANamespace": {
			reason: "A namespaced XR composes in its own namespace, so the namespaces in its refs don't matter.",
			object: `{"metadata":{"namespace":"a","velero.crossplane.io/unresolved-refs":[{"name":"b","namespace":"a"}]}}`,
			want:   `{"metadata":{"namespace":"a","velero.crossplane.io/unresolved-refs":[{"name":"b","namespace":"a"}]}}`,
		},
		"NoNamespace": {
			reason: "A reference without a namespace stays so, even if the mapping has an empty name.",
			object: `{"metadata":{"labels":{"crossplane.io/claim-namespace":""}},"spec":{"aRef":{"name":"b"},"bRef":{"namespace":""},"claimRef":{"namespace":"a"}}}`,
			want:   `{"metadata":{"labels":{"crossplane.io/claim-namespace":""}},"spec":{"aRef":{"name":"b"},"bRef":{"namespace":""},"claimRef":{"namespace":"copy"}}}`,
		},
		"NoLabels": {reason: "The mapping creates no label.", object: `{"metadata":{},"spec":{"claimRef":{"name":"c"}}}`, want: `{"spec":{"claimRef":{"name":"c"}}}`},
		"WrongTypes": {
			reason: "Malformed fields stay as they are.",
			object: `{"metadata":{"labels":7},"spec":{"aRef":"a","bRef":{"namespace":1},"cRefs":{"namespace":[]},"dRefs":[["a"]]}}`,
			want:   `{"metadata":{"labels":7},"spec":{"aRef":"a","bRef":{"namespace":1},"cRefs":{"namespace":[]},"dRefs":[["a"]]}}`,
		},
		"NoSpec": {reason: "The object has no reference to map.", object: `{"spec":"a"}`, want: `{"spec":"a"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u, want := xptest.XR("x", xptest.JSON(tc.object)), xptest.XR("x", xptest.JSON(tc.want))
			xp.MapNamespaces(u, map[string]string{"a": "copy", "": "nowhere"})
			if diff := cmp.Diff(want, u); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
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
