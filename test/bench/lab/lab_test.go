package lab

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestCompositionOf(t *testing.T) {
	c := (&Lab{}).compositionOf(7)
	steps, _, err := unstructured.NestedSlice(c.Object, "spec", "pipeline") // It copies, so it fails for what is no JSON.
	if err != nil {
		t.Fatal(err)
	}
	resources, _, _ := unstructured.NestedSlice(steps[0].(map[string]any), "input", "resources") //nolint:forcetypeassert // A step is an object.
	kinds, names := map[string]int{}, map[string]bool{}
	for _, r := range resources {
		resource := r.(map[string]any) //nolint:forcetypeassert // A resource is an object.
		kind, _, _ := unstructured.NestedString(resource, "base", "kind")
		name, _, _ := unstructured.NestedString(resource, "name")
		kinds[kind]++
		names[name] = true
	}
	if diff := cmp.Diff(map[string]int{"Bucket": 3, "Network": 2, "Database": 2}, kinds); diff != "" {
		t.Errorf("An XR must compose as many MRs as are wanted, of all kinds.\n-want, +got:\n%s", diff)
	}
	if len(names) != 7 {
		t.Errorf("Each must have a name of its own: %v", names)
	}
}

func TestPortable(t *testing.T) {
	list := `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"c.org/v1","kind":"Bucket","metadata":{"name":"b","namespace":"n","uid":"1","resourceVersion":"2","generation":3,
		"creationTimestamp":"2026-01-02T03:04:05Z","managedFields":[{"manager":"m"}],"ownerReferences":[{"name":"x","uid":"4"}],"annotations":{"crossplane.io/external-name":"e"},
		"labels":{"crossplane.io/composite":"x"},"finalizers":["f"]},"spec":{"a":"b"},"status":{"c":"d"}}]}`
	want := `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"c.org/v1","kind":"Bucket","metadata":{"name":"b","namespace":"n","annotations":{"crossplane.io/external-name":"e"},
		"labels":{"crossplane.io/composite":"x"},"finalizers":["f"]},"spec":{"a":"b"}}]}`
	b, n, err := portable([]byte(list))
	if err != nil || n != 1 {
		t.Fatalf("%d objects, error: %v", n, err)
	}
	if diff := cmp.Diff(decoded(t, []byte(want)), decoded(t, b)); diff != "" {
		t.Errorf("A careful script must keep the fields of users and of Crossplane, and remove those that the old cluster has written.\n-want, +got:\n%s", diff)
	}
	if _, _, err := portable([]byte("no resources found")); err == nil {
		t.Error("An object that is no list must be an error.")
	}
}

func decoded(t *testing.T, b []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}

	return v
}

func TestObjectsIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backup.tar.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	zipped := gzip.NewWriter(f)
	w := tar.NewWriter(zipped)
	for _, name := range []string{"metadata/version", "resources/pods/namespaces/n/b.json", "resources/pods/v1-preferredversion/namespaces/n/b.json", "resources/nodes/cluster/a.json"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := objectsIn(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"nodes/cluster/a", "pods/namespaces/n/b"}, got); diff != "" {
		t.Errorf("Each object counts once.\n-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"pods/namespaces/n/b"}, missing(got, []string{"nodes/cluster/a", "x"})); diff != "" {
		t.Errorf("Objects that only one of two backups has must be named.\n-want, +got:\n%s", diff)
	}
}
