package drill

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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
