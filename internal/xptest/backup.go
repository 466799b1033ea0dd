package xptest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Backup returns a backup of the objects as Velero writes it: a gzipped tarball with each object
// twice, once below its version.
func Backup(objects ...*unstructured.Unstructured) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	write := func(name string, content []byte) {
		must(w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content))}))
		_, err := w.Write(content)
		must(err)
	}
	write("metadata/version", []byte("1.1.0\n"))
	for _, u := range objects {
		j, err := u.MarshalJSON()
		must(err)
		scope := "cluster"
		if u.GetNamespace() != "" {
			scope = "namespaces/" + u.GetNamespace()
		}
		top := "resources/" + Resource(u)
		write(strings.Join([]string{top, scope, u.GetName() + ".json"}, "/"), j)
		write(strings.Join([]string{top, u.GroupVersionKind().Version + "-preferredversion", scope, u.GetName() + ".json"}, "/"), j)
	}
	must(w.Close())
	must(z.Close())

	return b.Bytes()
}

// Resource returns the resource of an object as Velero names it, for a regular plural.
func Resource(u *unstructured.Unstructured) string {
	resource := strings.ToLower(u.GetKind()) + "s"
	if group := u.GroupVersionKind().Group; group != "" {
		resource += "." + group
	}

	return resource
}

func must(err error) {
	if err != nil {
		panic(err) // The test is wrong.
	}
}
