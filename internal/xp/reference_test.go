package xp_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

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
