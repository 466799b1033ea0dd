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
	u := xptest.NamespacedMR("b", xptest.OwnedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "helper"}), xptest.ControlledBy(xptest.ModernXR("x")))
	want := []xp.Ref{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "team-a", Name: "helper"},
		{APIVersion: xptest.ModernVersion, Kind: xptest.ModernKind, Namespace: "team-a", Name: "x"},
	}
	if diff := cmp.Diff(want, xp.Owners(u)); diff != "" {
		t.Errorf("All owners come first, the controller and others: -want, +got:\n%s", diff)
	}
	if got := xp.Owners(xptest.MR("b")); got != nil {
		t.Errorf("An object without owners has none; got %v", got)
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
			reason: "What it protects, and what it protects it for.",
			spec:   of + "," + by, want: []xp.Ref{bucket(""), {APIVersion: "v1", Kind: "ConfigMap", Name: "c"}},
		},
		"Alone":      {reason: "It may protect it for nothing but a reason.", spec: of + `,"reason":"x"`, want: []xp.Ref{bucket("")}},
		"Namespaced": {reason: "In its own namespace.", namespace: "team-a", spec: of, want: []xp.Ref{bucket("team-a")}},
		"Elsewhere": {
			reason:    "It can name another; whether it is followed there is not decided here.",
			namespace: "team-a",
			spec:      `"of":{"apiVersion":"c.org/v1","kind":"Bucket","resourceRef":{"name":"b","namespace":"team-b"}}`,
			want:      []xp.Ref{bucket("team-b")},
		},
		"Selector": {
			reason: "Crossplane has not resolved it yet, so it names nothing.",
			spec:   `"of":{"apiVersion":"c.org/v1","kind":"Bucket","resourceSelector":{}}`,
		},
		"WrongTypes": {reason: "Malformed names nothing.", spec: `"of":{"apiVersion":"c.org/v1","kind":"Bucket","resourceRef":{"name":1}},"by":7`},
		"NoKind":     {reason: "What has no kind can't be looked up.", spec: `"of":{"resourceRef":{"name":"b"}}`},
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
			reason: "The claim comes back in the other namespace, and so does the label that names it.",
			object: `{"metadata":{"labels":{"crossplane.io/claim-namespace":"a","l":"a"}},"spec":{"claimRef":{"kind":"C","name":"c","namespace":"a"}}}`,
			want:   `{"metadata":{"labels":{"crossplane.io/claim-namespace":"copy","l":"a"}},"spec":{"claimRef":{"kind":"C","name":"c","namespace":"copy"}}}`,
		},
		"ResourceRefs": {
			reason: "Those that are not restored elsewhere stay.",
			object: `{"spec":{"crossplane":{"resourceRefs":[{"name":"b","namespace":"a"},{"name":"b","namespace":"b"},{"name":"c"},7]}}}`,
			want:   `{"spec":{"crossplane":{"resourceRefs":[{"name":"b","namespace":"copy"},{"name":"b","namespace":"b"},{"name":"c"},7]}}}`,
		},
		"Secrets": {
			reason: "Where an MR publishes, and what it reads.",
			object: `{"spec":{"writeConnectionSecretToRef":{"name":"s","namespace":"a"},"forProvider":{"passwordSecretRef":{"key":"k","namespace":"a"}}}}`,
			want:   `{"spec":{"writeConnectionSecretToRef":{"name":"s","namespace":"copy"},"forProvider":{"passwordSecretRef":{"key":"k","namespace":"copy"}}}}`,
		},
		"Usage": {
			reason: "What a Usage uses, by name and by selector.",
			object: `{"spec":{"of":{"resourceRef":{"namespace":"a"},"resourceSelector":{"namespace":"a"}}}}`,
			want:   `{"spec":{"of":{"resourceRef":{"namespace":"copy"},"resourceSelector":{"namespace":"copy"}}}}`,
		},
		"Object": {
			reason: "What a provider-kubernetes Object manages is its external resource and stays; what it waits for and patches from follows.",
			object: `{"spec":{"forProvider":{"manifest":{"metadata":{"namespace":"a"},"spec":{"xRef":{"namespace":"a"}}}},
				"references":[{"dependsOn":{"namespace":"a"},"patchesFrom":{"namespace":"a"}}]}}`,
			want: `{"spec":{"forProvider":{"manifest":{"metadata":{"namespace":"a"},"spec":{"xRef":{"namespace":"a"}}}},
				"references":[{"dependsOn":{"namespace":"copy"},"patchesFrom":{"namespace":"copy"}}]}}`,
		},
		"Fields": {
			reason: "A namespace that is no part of a reference can be anything, such as that of metrics.",
			object: `{"spec":{"forProvider":{"namespace":"a","alarm":{"namespace":"a"},"alarms":[{"namespace":"a"}]}},"status":{"xRef":{"namespace":"a"}}}`,
			want:   `{"spec":{"forProvider":{"namespace":"a","alarm":{"namespace":"a"},"alarms":[{"namespace":"a"}]}},"status":{"xRef":{"namespace":"a"}}}`,
		},
		"Unresolved": {
			reason: "What is not waited for must still be the same as what is referenced.",
			object: `{"metadata":{"velero.crossplane.io/dangling":[{"name":"b","namespace":"a"}]}}`,
			want:   `{"metadata":{"velero.crossplane.io/dangling":[{"name":"b","namespace":"copy"}]}}`,
		},
		"UnresolvedInANamespace": {
			reason: "A namespaced XR composes in its own namespace, so what it lists is read as there, and the list of what dangles with it.",
			object: `{"metadata":{"namespace":"a","velero.crossplane.io/dangling":[{"name":"b","namespace":"a"}]}}`,
			want:   `{"metadata":{"namespace":"a","velero.crossplane.io/dangling":[{"name":"b","namespace":"a"}]}}`,
		},
		"NoNamespace": {
			reason: "What names no namespace is not restored to another, though somebody has mapped the empty one.",
			object: `{"metadata":{"labels":{"crossplane.io/claim-namespace":""}},"spec":{"aRef":{"name":"b"},"bRef":{"namespace":""},"claimRef":{"namespace":"a"}}}`,
			want:   `{"metadata":{"labels":{"crossplane.io/claim-namespace":""}},"spec":{"aRef":{"name":"b"},"bRef":{"namespace":""},"claimRef":{"namespace":"copy"}}}`,
		},
		"NoLabels": {reason: "Nor is a label made up.", object: `{"metadata":{},"spec":{"claimRef":{"name":"c"}}}`, want: `{"spec":{"claimRef":{"name":"c"}}}`},
		"WrongTypes": {
			reason: "Malformed stays as it is.",
			object: `{"metadata":{"labels":7},"spec":{"aRef":"a","bRef":{"namespace":1},"cRefs":{"namespace":[]},"dRefs":[["a"]]}}`,
			want:   `{"metadata":{"labels":7},"spec":{"aRef":"a","bRef":{"namespace":1},"cRefs":{"namespace":[]},"dRefs":[["a"]]}}`,
		},
		"NoSpec": {reason: "There is nothing to map.", object: `{"spec":"a"}`, want: `{"spec":"a"}`},
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
	f.Add(`{"metadata":{"labels":{"crossplane.io/claim-namespace":"a"},"velero.crossplane.io/dangling":[{"namespace":"a"}]},"spec":{"claimRef":{"namespace":"a"}}}`)
	f.Add(`{"spec":{"crossplane":{"resourceRefs":[{"namespace":"a"},null,7,[{"namespace":"a"}]]},"forProvider":{"manifest":{"xRef":{"namespace":"a"}}}}}`)
	f.Add(`{"spec":[],"metadata":{"labels":{"crossplane.io/claim-namespace":1},"velero.crossplane.io/dangling":{"namespace":"a"}}}`)
	f.Fuzz(func(t *testing.T, document string) {
		var object map[string]any
		if json.Unmarshal([]byte(document), &object) != nil {
			t.Skip()
		}
		before := decoded(t, object)
		after := before.DeepCopy()
		xp.MapNamespaces(after, nil)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("nothing is mapped, and this changed:\n%s", diff)
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
			t.Errorf("more than a namespace changed: %s", diff)
		}
	}
}
