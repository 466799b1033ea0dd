package pack

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// The benchmarks use an MR of a real cluster's size. BenchmarkDecode is the baseline: the others
// pack the MR from JSON, pack the decoded MR, and unpack it.

func BenchmarkDecode(b *testing.B) {
	document := xptest.ManagedResource()
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		if err := (&unstructured.Unstructured{}).UnmarshalJSON(document); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSlim(b *testing.B) {
	document := xptest.ManagedResource()
	p := New()
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := p.JSON(document, slim()); !ok {
			b.Fatal("The packer must be sure of JSON from an API server.")
		}
	}
}

func BenchmarkPack(b *testing.B) {
	object := decoded(xptest.ManagedResource())
	p := New()
	b.ReportAllocs()
	for b.Loop() {
		p.Pack(object)
	}
}

func BenchmarkUnpack(b *testing.B) {
	p := New()
	var o Object
	for range minCount + 1 {
		o, _ = p.JSON(xptest.ManagedResource(), slim())
	}
	b.ReportAllocs()
	for b.Loop() {
		if o.Unpack(nil) == nil {
			b.Fatal("Unpack must return the object.")
		}
	}
	b.ReportMetric(float64(len(o.data)), "bytes-packed")
}
