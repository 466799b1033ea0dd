package copies

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	xr = `{"apiVersion":"example.org/v1","kind":"Shop","metadata":{"name":"tree-000000","namespace":"bench","uid":"465b9a29-e812-4f54-a402-e6de6897b10b",` +
		`"note":[{"kind":"Network","name":"tree-000000-aa"}]},"spec":{"crossplane":{"resourceRefs":[{"kind":"Network","name":"tree-000000-aa"}]}}}`
	// The manager is the sha256sum of "tree-000000Shop.example.org".
	network = `{"kind":"Network","apiVersion":"cloud.org/v1","metadata":{"annotations":{"crossplane.io/external-name":"net-12"},"name":"tree-000000-aa","namespace":"bench",` +
		`"uid":"35153086-95e6-4e17-a048-13515c6d3be6","ownerReferences":[{"name":"tree-000000","uid":"465b9a29-e812-4f54-a402-e6de6897b10b"}],` +
		`"managedFields":[{"manager":"apiextensions.crossplane.io/composed/MANAGER","f:ownerReferences":{"k:{\"uid\":\"465b9a29-e812-4f54-a402-e6de6897b10b\"}":{}}}]},` +
		`"status":{"atProvider":{"id":"net-12"}}}`
	bucket = `{"kind":"Bucket","apiVersion":"cloud.org/v1","metadata":{"annotations":{"crossplane.io/external-name":"tree-000000-bb"},"name":"tree-000000-bb","uid":"1-2-3"}}`
)

func small(t *testing.T) *Template {
	t.Helper()
	b := archive(t, map[string]string{
		"metadata/version":                                                                  "1.1.0\n",
		"resources/namespaces/cluster/bench.json":                                           `{"kind":"Namespace","metadata":{"name":"bench","uid":"9"}}`,
		"resources/namespaces/v1-preferredversion/cluster/bench.json":                       `{"kind":"Namespace","metadata":{"name":"bench","uid":"9"}}`,
		"resources/events/namespaces/bench/tree-000000.18ea.json":                           `{"kind":"Event"}`,
		"resources/shops.example.org/namespaces/bench/tree-000000.json":                     xr,
		"resources/shops.example.org/v1-preferredversion/namespaces/bench/tree-000000.json": xr,
		"resources/networks.cloud.org/namespaces/bench/tree-000000-aa.json":                 strings.Replace(network, "MANAGER", "1ee1d38d7dd2582a69d8f60886115c2f9779f7a97ef3913e1150922e221dbcc1", 1),
		"resources/buckets.cloud.org/namespaces/bench/tree-000000-bb.json":                  bucket,
	})
	template, err := Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}

	return template
}

func TestRead(t *testing.T) {
	template := small(t)
	want := []External{{Kind: "Bucket", Name: "tree-000000-bb"}, {Kind: "Network", Name: "net-12"}}
	got := slices.SortedFunc(slices.Values(template.Externals()), func(a, b External) int { return strings.Compare(a.Kind, b.Kind) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("The cloud's resources must match the tree's external names.\n-want, +got:\n%s", diff)
	}
	if template.Size() != 3 || template.Shared() != 1 {
		t.Errorf("a tree of %d objects and %d others; there are 3 and 1, each of them once or twice in the file", template.Size(), template.Shared())
	}
	if _, err := Read(bytes.NewReader(archive(t, map[string]string{"resources/shops/cluster/other.json": xr}))); err == nil {
		t.Error("A backup without the tree gives no copies, and must not pass for one.")
	}
}

func TestWrite(t *testing.T) {
	template := small(t)
	var b bytes.Buffer
	if err := template.Write(&b, 3, func(i int, of External) string { return fmt.Sprintf("%s-%d", of.Name, i) }); err != nil {
		t.Fatal(err)
	}
	written, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range slices.Concat(written.shared, written.tree) {
		files[f.name] = string(f.content)
	}
	wantNames := []string{"metadata/version", "resources/namespaces/cluster/bench.json", "resources/namespaces/v1-preferredversion/cluster/bench.json"}
	for i := range 3 {
		wantNames = append(wantNames,
			"resources/shops.example.org/namespaces/bench/"+Name(i)+".json", "resources/shops.example.org/v1-preferredversion/namespaces/bench/"+Name(i)+".json",
			"resources/networks.cloud.org/namespaces/bench/"+Name(i)+"-aa.json", "resources/buckets.cloud.org/namespaces/bench/"+Name(i)+"-bb.json")
	}
	slices.Sort(wantNames)
	if diff := cmp.Diff(wantNames, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Errorf("The objects of the tree must be there three times and the others once, without Events.\n-want, +got:\n%s", diff)
	}

	uid := func(of string) string { return otherUID(of, 2) }
	wantXR := strings.NewReplacer("tree-000000", "tree-000002", "465b9a29-e812-4f54-a402-e6de6897b10b", uid("465b9a29-e812-4f54-a402-e6de6897b10b")).Replace(xr)
	if diff := cmp.Diff(wantXR, files["resources/shops.example.org/namespaces/bench/tree-000002.json"]); diff != "" {
		t.Errorf("Names, references and the plugin's notes must be those of the copy.\n-want, +got:\n%s", diff)
	}
	wantNetwork := strings.NewReplacer("tree-000000", "tree-000002", "net-12", "net-12-2", "MANAGER", template.manager("tree-000002"),
		"465b9a29-e812-4f54-a402-e6de6897b10b", uid("465b9a29-e812-4f54-a402-e6de6897b10b"), "35153086-95e6-4e17-a048-13515c6d3be6", uid("35153086-95e6-4e17-a048-13515c6d3be6"),
	).Replace(network)
	if diff := cmp.Diff(wantNetwork, files["resources/networks.cloud.org/namespaces/bench/tree-000002-aa.json"]); diff != "" {
		t.Errorf("The owner, the managers of fields and the external name must be those of the copy.\n-want, +got:\n%s", diff)
	}
}

func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for name, content := range files {
		if err := write(w, file{name: name, content: []byte(content)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}

	return b.Bytes()
}
