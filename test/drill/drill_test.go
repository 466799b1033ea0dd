package drill

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestManagersOf(t *testing.T) {
	const name = "Crossplane Apply v1"
	entry := func(fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: "Crossplane", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
		}
	}
	status := entry(`{"f:status":{"f:ready":{}}}`)
	status.Subresource = "status"
	cases := map[string]struct {
		reason  string
		entries []metav1.ManagedFieldsEntry
		want    Managers
	}{
		"Fields": {
			reason:  "A manager can own a map itself or only its fields.",
			entries: []metav1.ManagedFieldsEntry{entry(`{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:b":{},"f:c":{"f:d":{}}}}`)},
			want:    Managers{name: {"/metadata/labels", "/metadata/labels/a", "/spec/b", "/spec/c/d"}},
		},
		"Lists": {
			reason:  "A key identifies an item of a list, and a value an item of a set.",
			entries: []metav1.ManagedFieldsEntry{entry(`{"f:spec":{"f:a":{"k:{\"type\":\"Ready\"}":{".":{}}},"f:b":{"v:\"Observe\"":{}}}}`)},
			want:    Managers{name: {`/spec/a/[type="Ready"]`, `/spec/b/[="Observe"]`}},
		},
		"Owners": {
			reason: "Owner UIDs differ between clusters, but a restore must leave no UID without an owner.",
			entries: []metav1.ManagedFieldsEntry{
				entry(`{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"1\"}":{},"k:{\"uid\":\"2\"}":{}}}}`),
			},
			want: Managers{name: {"/metadata/ownerReferences/XShop a", `/metadata/ownerReferences/no owner of it: [uid="2"]`}},
		},
		"Entries": {
			reason:  "The status and a second entry of one manager must stay apart.",
			entries: []metav1.ManagedFieldsEntry{status, entry(`{"f:spec":{}}`), entry(`{"f:data":{}}`)},
			want:    Managers{name + " status": {"/status/ready"}, name: {"/spec"}, name + " again": {"/data"}},
		},
		"Velero": {
			reason:  "Velero's labels on a claim reach its XR, and may create the map of labels there.",
			entries: []metav1.ManagedFieldsEntry{entry(`{"f:metadata":{"f:labels":{".":{},"f:velero.io/backup-name":{}},"f:name":{}}}`)},
			want:    Managers{name: {"/metadata/name"}},
		},
		"VeleroAndOthers": {
			reason:  "Velero's labels must not hide other labels.",
			entries: []metav1.ManagedFieldsEntry{entry(`{"f:metadata":{"f:labels":{".":{},"f:a":{},"f:velero.io/backup-name":{}}}}`)},
			want:    Managers{name: {"/metadata/labels", "/metadata/labels/a"}},
		},
		"Conditions": {
			reason:  "Only the fields that vary without a restore may be left out.",
			entries: []metav1.ManagedFieldsEntry{entry(`{"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"Responsive\"}":{".":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:observedGeneration":{}}}}}`)},
			want:    Managers{name: {`/status/conditions/[type="Ready"]`, `/status/conditions/[type="Ready"]/lastTransitionTime`}},
		},
		"Crossplane": {
			reason: "Crossplane's managers share its conditions, but other fields of the status keep their manager.",
			entries: []metav1.ManagedFieldsEntry{
				{Manager: "crossplane-v2", Subresource: "status", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:status":{"f:a":{},"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:type":{}}}}}`)}},
				{
					Manager: "apiextensions.crossplane.io/composite", Subresource: "status",
					FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:reason":{},"f:type":{}}}}}`)},
				},
				{Manager: "another", Subresource: "status", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:type":{}}}}}`)}},
			},
			want: Managers{
				"crossplane-v2 status": {"/status/a"}, "another status": {`/status/conditions/[type="Ready"]/type`},
				"Crossplane, conditions": {`/status/conditions/[type="Ready"]/reason`, `/status/conditions/[type="Ready"]/type`},
			},
		},
		"Varies": {
			reason:  "An entry with only varying fields is left out, but an empty entry stays.",
			entries: []metav1.ManagedFieldsEntry{entry(`{"f:status":{".":{},"f:conditions":{}}}`), {Manager: "empty", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{}`)}}},
			want:    Managers{"empty": {}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "XShop", Name: "a", UID: "1"}})
			u.SetManagedFields(tc.entries)
			if diff := cmp.Diff(tc.want, ManagersOf(u), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStrays(t *testing.T) {
	owned := func(name, uid string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cloud.example.org/v1", "kind": "Bucket", "metadata": map[string]any{
			"name": name, "ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "XR", "name": "xr", "uid": uid, "controller": true}},
		}}}
	}
	xr := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "acme.example.org/v1", "kind": "XR", "metadata": map[string]any{"name": "xr", "uid": "1"},
		"spec": map[string]any{
			"resourceRefs":               []any{map[string]any{"apiVersion": "cloud.example.org/v1", "kind": "Bucket", "name": "listed"}},
			"writeConnectionSecretToRef": map[string]any{"namespace": "vault", "name": "xr"},
		},
	}}
	secret := owned("xr", "1")
	secret.SetAPIVersion("v1")
	secret.SetKind("Secret")
	secret.SetNamespace("vault")
	f := &sceneObjects{objects: map[ID]*unstructured.Unstructured{}}
	for _, u := range []*unstructured.Unstructured{xr, secret, owned("listed", "1"), owned("forgotten", "1"), owned("another's", "2")} {
		f.objects[idOf(u)] = u
	}
	var got []string
	for _, u := range f.strays() {
		got = append(got, u.GetName())
	}
	if diff := cmp.Diff([]string{"forgotten"}, got); diff != "" {
		t.Errorf("a stray is an object that the XR controls but does not list: -want, +got:\n%s", diff)
	}
}
