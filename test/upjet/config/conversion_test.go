package config_test

import (
	"testing"

	"github.com/crossplane/upjet/v2/pkg/controller/conversion"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/apis/namespaced"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/apis/namespaced/upjet/v1beta1"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/apis/namespaced/upjet/v1beta2"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/config"
)

// A volume has the same fields in both versions, including its status and annotations.
func TestConversion(t *testing.T) {
	s := runtime.NewScheme()
	if err := namespaced.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	if err := conversion.RegisterConversions(config.Cluster(t.Context()), config.Namespaced(t.Context()), s); err != nil {
		t.Fatal(err)
	}
	text := func(s string) *string { return &s }
	meta := metav1.ObjectMeta{Namespace: "a", Name: "v", Annotations: map[string]string{"crossplane.io/external-name": "net-1"}}
	former := &v1beta1.Volume{ObjectMeta: meta}
	former.Spec.ForProvider.Range = text("10.0.0.0/16")
	former.Status.AtProvider = v1beta1.VolumeObservation{ID: text("net-1"), Range: text("10.0.0.0/16"), Zone: text("zone-1")}
	want := &v1beta2.Volume{TypeMeta: metav1.TypeMeta{APIVersion: "upjet.m.example.org/v1beta2", Kind: "Volume"}, ObjectMeta: meta}
	want.Spec.ForProvider.Cidr = text("10.0.0.0/16")
	want.Status.AtProvider = v1beta2.VolumeObservation{ID: text("net-1"), Cidr: text("10.0.0.0/16"), Zone: text("zone-1")}

	got := &v1beta2.Volume{}
	if err := former.DeepCopy().ConvertTo(got); err != nil {
		t.Fatalf("ConvertTo(...): %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ConvertTo(...): -want, +got:\n%s", diff)
	}
	back := &v1beta1.Volume{}
	if err := back.ConvertFrom(got); err != nil {
		t.Fatalf("ConvertFrom(...): %v", err)
	}
	former.TypeMeta = metav1.TypeMeta{APIVersion: "upjet.m.example.org/v1beta1", Kind: "Volume"}
	if diff := cmp.Diff(former, back); diff != "" {
		t.Errorf("ConvertFrom(...): -want, +got:\n%s", diff)
	}
}
