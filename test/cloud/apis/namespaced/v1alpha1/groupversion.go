// Package v1alpha1 holds the kinds that are namespaced, as in Crossplane v2: they write their
// connection secret to their own namespace. +kubebuilder:object:generate=true
// +groupName=cloud.m.example.org +versionName=v1alpha1
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "cloud.m.example.org", Version: "v1alpha1"}

// AddToScheme adds the kinds in this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Bucket{}, &BucketList{}, &Network{}, &NetworkList{}, &Database{}, &DatabaseList{})
	metav1.AddToGroupVersion(s, GroupVersion)

	return nil
}
