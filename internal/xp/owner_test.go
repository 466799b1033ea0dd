package xp_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestVerifyOwner(t *testing.T) {
	type args struct {
		owner, item *unstructured.Unstructured
		namespace   string
	}
	bucket, local := xptest.MR("b"), xptest.NamespacedMR("b")
	const notListed, notPublished, notLabelled = "the owner does not list it in its resourceRefs",
		"the owner does not publish its connection details in it", "it is not labelled as a revision of it"
	pkg := xptest.Object("pkg.crossplane.io/v1", "Provider", "", "p")
	pkgRevision := func(of string) *unstructured.Unstructured {
		return xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p-1", xptest.Labelled(xp.LabelPackage, of))
	}
	xptest.Run(t, map[string]xptest.Row[args, string]{
		"Mapped": {
			Reason: "The restore maps the namespace of the XR and of the item to the same one.",
			In:     args{owner: xptest.XRV2("x", xptest.In("copy"), xptest.Refs(local)), item: local, namespace: "copy"},
		},
		"Upgraded": {
			Reason: "A ref keeps the version that was served when it was written.",
			In:     args{owner: xptest.XR("x", xptest.Refs(bucket)), item: xptest.With(bucket, xptest.JSON(`{"apiVersion":"cloud.example.org/v9"}`))},
		},
		"OneSided": {
			Reason: "Any tenant can write an owner reference.",
			In:     args{owner: xptest.XR("x", xptest.Refs(bucket)), item: xptest.MR("c")}, Want: notListed,
		},
		"AnotherNamespace": {
			Reason: "A namespaced XR owns objects in its own namespace only.",
			In:     args{owner: xptest.XRV2("x", xptest.Refs(local)), item: local, namespace: "team-b"}, Want: notListed,
		},
		"Malformed": {
			Reason: "Refs that can't be read prove nothing.",
			In:     args{owner: xptest.XR("x", xptest.JSON(`{"spec":{"resourceRefs":true}}`)), item: bucket},
			Want:   "cannot read the resourceRefs of XOrder x: they are a bool, not a list",
		},
		"Secret": {
			Reason: "The claim publishes in the Secret.",
			In:     args{owner: xptest.Claim("o", xptest.PublishesTo("", "s")), item: xptest.Secret("s"), namespace: "team-a"},
		},
		"ClusterSecret": {
			Reason: "The MR publishes in the Secret.",
			In:     args{owner: xptest.MR("b", xptest.PublishesTo("infra", "s")), item: xptest.Secret("s", xptest.In("infra")), namespace: "infra"},
		},
		"SecretElsewhere": {
			Reason: "The MR publishes in another namespace.",
			In:     args{owner: xptest.MR("b", xptest.PublishesTo("infra", "s")), item: xptest.Secret("s"), namespace: "team-a"}, Want: notPublished,
		},
		"SecretListed": {
			Reason: "A ref does not prove the ownership of a connection Secret.",
			In:     args{owner: xptest.XR("x", xptest.Refs(xptest.Secret("s"))), item: xptest.Secret("s"), namespace: "team-a"}, Want: notPublished,
		},
		"Revision": {
			Reason: "Crossplane labels a revision with its Composition.",
			In:     args{owner: xptest.Composition("orders", xptest.XR("x")), item: xptest.Revision("r", xptest.XR("x"))},
		},
		"AnotherRevision": {
			Reason: "The revision carries the label of another Composition.",
			In:     args{owner: xptest.Composition("others", xptest.XR("x")), item: xptest.Revision("r", xptest.XR("x"))}, Want: notLabelled,
		},
		"PackageRevision":    {Reason: "Crossplane labels a package revision with its package.", In: args{owner: pkg, item: pkgRevision("p")}},
		"PackageRevisionsXR": {Reason: "Only a package has package revisions.", In: args{owner: xptest.XR("p"), item: pkgRevision("p")}, Want: notLabelled},
		"RevisionsXR": {
			Reason: "Only a Composition has CompositionRevisions.",
			In:     args{owner: xptest.XR("orders"), item: xptest.Revision("r", xptest.XR("x"))}, Want: notLabelled,
		},
	}, func(in args) string {
		return xp.VerifyOwner(in.owner, in.item, in.namespace)
	})
}

func TestRenameOwners(t *testing.T) {
	const before = `{"metadata":{"managedFields":[
		{"manager":"crossplane","fieldsV1":{"f:metadata":{"f:labels":{},"f:ownerReferences":{".":{},"k:{\"uid\":\"old\"}":{"f:uid":{}},"k:{\"uid\":\"gone\"}":{}}},
			"f:spec":{}}},
		{"manager":"kubectl","fieldsV1":{"f:spec":{"f:size":{}}}}]}}`
	cases := map[string]struct {
		reason  string
		managed string
		uids    map[types.UID]types.UID
		want    string
	}{
		"Renamed": {
			reason:  "A live owner gets its new UID, an absent one is removed, and other entries stay.",
			managed: before,
			uids:    map[types.UID]types.UID{"old": "new"},
			want: `{"metadata":{"managedFields":[
				{"manager":"crossplane","fieldsV1":{"f:metadata":{"f:labels":{},"f:ownerReferences":{".":{},"k:{\"uid\":\"new\"}":{"f:uid":{}}}},"f:spec":{}}},
				{"manager":"kubectl","fieldsV1":{"f:spec":{"f:size":{}}}}]}}`,
		},
		"AllGone": {
			reason:  "Without any owner, no manager keeps the list of owner references.",
			managed: before,
			want: `{"metadata":{"managedFields":[
				{"manager":"crossplane","fieldsV1":{"f:metadata":{"f:labels":{}},"f:spec":{}}},
				{"manager":"kubectl","fieldsV1":{"f:spec":{"f:size":{}}}}]}}`,
		},
		"Unreadable": {
			reason:  "A key that can't be read could contain an old UID.",
			managed: `{"metadata":{"managedFields":[{"fieldsV1":{"f:metadata":{"f:ownerReferences":{"k:{uid:old}":{},"k:[]":{},"v:\"old\"":{},"old":{}}}}}]}}`,
			uids:    map[types.UID]types.UID{"old": "new"},
			want:    `{"metadata":{"managedFields":[{"fieldsV1":{}}]}}`,
		},
		"WrongTypes": {
			reason:  "Entries of the wrong type have no owners.",
			managed: `{"metadata":{"managedFields":[1,null,"x",{"fieldsV1":[]},{"fieldsV1":{"f:metadata":7}}]}}`,
			want:    `{"metadata":{"managedFields":[1,null,"x",{"fieldsV1":[]},{"fieldsV1":{"f:metadata":7}}]}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u, want := xptest.MR("b", xptest.JSON(tc.managed)), xptest.MR("b", xptest.JSON(tc.want))
			xp.RenameOwners(u, tc.uids)
			if diff := cmp.Diff(want, u); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzRenameOwners checks that f:ownerReferences keeps no UID that is not in the map, and that
// nothing else changes.
func FuzzRenameOwners(f *testing.F) {
	for _, s := range []string{
		`[{"fieldsV1":{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"old\"}":{},"k:{\"uid\":\"gone\"}":{"f:uid":{}}}}}}]`,
		`[{"fieldsV1":{"f:metadata":{"f:ownerReferences":{"k:{\"UID\":\"gone\",\"x\":1}":{},"v:\"gone\"":{},"i:0":{}}}}}]`,
		`[{"fieldsV1":{"f:metadata":{"f:ownerReferences":"gone"}}}]`,
		`[null,1,1.5,{}]`, `{}`, `null`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, managedFields string) {
		var value any
		if json.Unmarshal([]byte(managedFields), &value) != nil {
			t.Skip()
		}
		u := decoded(t, map[string]any{"apiVersion": "v1", "kind": "K", "metadata": map[string]any{"name": "n", "managedFields": value}})
		xp.RenameOwners(u, map[types.UID]types.UID{"old": "new"})
		list, _ := u.Object["metadata"].(map[string]any)["managedFields"].([]any)
		for _, entry := range list {
			m, _ := entry.(map[string]any)
			owners, found, _ := unstructured.NestedFieldNoCopy(m, "fieldsV1", "f:metadata", "f:ownerReferences")
			if !found {
				continue
			}
			fields, ok := owners.(map[string]any)
			if !ok {
				t.Fatalf("f:ownerReferences still has %v", owners)
			}
			for key := range fields {
				if key != "." && key != `k:{"uid":"new"}` {
					t.Errorf("%s is still there", key)
				}
			}
		}
	})
}

// FuzzVerifyOwner checks that VerifyOwner accepts no owner that does not name the item, and does
// not panic.
func FuzzVerifyOwner(f *testing.F) {
	f.Add(`{"spec":{"resourceRefs":[{"apiVersion":"v1","kind":"K","name":"n"}]}}`, `{"apiVersion":"v1","kind":"K","metadata":{"name":"n"}}`, "")
	f.Add(`{"spec":{"crossplane":{"resourceRefs":[1]}}}`, `{"kind":"K"}`, "a")
	f.Add(`{"spec":{"writeConnectionSecretToRef":{"name":"s","namespace":"a"}}}`,
		`{"apiVersion":"v1","kind":"Secret","type":"connection.crossplane.io/v1alpha1","metadata":{"name":"s"}}`, "a")
	f.Add(`{"kind":"Composition","metadata":{"name":"c"}}`,
		`{"apiVersion":"apiextensions.crossplane.io/v1","kind":"CompositionRevision","metadata":{"labels":{"crossplane.io/composition-name":"c"}}}`, "")
	f.Add(`{"metadata":7,"spec":[]}`, `{"metadata":{"labels":[],"annotations":{"a":1},"ownerReferences":[null,{"controller":1}]}}`, "")
	f.Fuzz(func(t *testing.T, ownerJSON, itemJSON, namespace string) {
		var owner, it map[string]any
		if json.Unmarshal([]byte(ownerJSON), &owner) != nil || json.Unmarshal([]byte(itemJSON), &it) != nil {
			t.Skip()
		}
		o, i := decoded(t, owner), decoded(t, it)
		for _, u := range []*unstructured.Unstructured{o, i} {
			callAll(u)
		}
		if xp.VerifyOwner(o, i, namespace) == "" && i.GetName() != "" && !xp.IsRevision(i) {
			spec, _ := json.Marshal(o.Object["spec"])
			name, _ := json.Marshal(i.GetName())
			if !bytes.Contains(spec, name) {
				t.Errorf("%s is owned by %s, which does not name it", itemJSON, ownerJSON)
			}
		}
	})
}

// FuzzResourceRefs checks that refs are read or refused, and that those of a namespaced XR are in
// its namespace.
func FuzzResourceRefs(f *testing.F) {
	for _, s := range []string{
		`{"spec":{"resourceRefs":[{"apiVersion":"v1","kind":"K","name":"n"}]}}`,
		`{"metadata":{"namespace":"a"},"spec":{"crossplane":{"compositionRef":{},"resourceRefs":[{"apiVersion":"v1","kind":"K","name":"n","namespace":"b"}]}}}`,
		`{"spec":{"resourceRefs":[1,1.5,9223372036854775808,null,{}]}}`, `{"spec":7}`, `{"metadata":[]}`, `{}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, document string) {
		var object map[string]any
		if json.Unmarshal([]byte(document), &object) != nil {
			t.Skip()
		}
		u := decoded(t, object)
		callAll(u)
		refs, err := xp.CompositeFrom(u).ResourceRefs()
		if err != nil && (refs != nil || !strings.HasPrefix(err.Error(), "cannot read ")) {
			t.Errorf("refs %v with error %v", refs, err)
		}
		for _, r := range refs {
			if r.Name == "" || r.Kind == "" || r.APIVersion == "" || u.GetNamespace() != "" && r.Namespace != u.GetNamespace() {
				t.Errorf("ref %+v", r)
			}
		}
	})
}

// decoded returns an object as Velero or the API server decodes it, with int64 and float64 only.
func decoded(t *testing.T, object map[string]any) *unstructured.Unstructured {
	t.Helper()
	if object == nil {
		object = map[string]any{}
	}
	if kind, ok := object["kind"].(string); !ok || kind == "" {
		object["kind"] = "K"
	}
	b, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if u.UnmarshalJSON(b) != nil {
		t.Skip()
	}

	return u
}

// callAll calls every view of an object. A fuzz test fails if one panics.
func callAll(u *unstructured.Unstructured) {
	_, _, _, _, _, _ = xp.IsComposite(u), xp.IsClaim(u), xp.IsManaged(u), xp.IsComposed(u), xp.IsConnectionSecret(u), xp.IsPaused(u)
	_, _ = xp.SkipReason(u), xp.String(u)
	i := xp.Instance{Unstructured: u}
	_, _ = i.UpdatePolicy()
	_, _ = i.Revision(), i.Composition()
	_, _ = xp.CompositeFrom(u).ClaimRef()
	_, _ = xp.ClaimFrom(u).CompositeRef()
	_, _ = xp.SecretRef(u)
	_, _ = xp.ConditionOf(u, xp.ConditionSynced)
	_, _ = xp.Controller(u)
	_ = xp.Bound(xp.ClaimFrom(u), xp.CompositeFrom(u))
	_ = xp.Composes(u, xp.CompositeFrom(u))
	_, _, _ = xp.RestoreFirst(u)
	_, _ = xp.UnresolvedRefs(u)
	_ = i.SetUpdatePolicy(xp.UpdateManual)
}
