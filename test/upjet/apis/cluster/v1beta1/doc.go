// Package v1beta1 has the kinds with which the provider is configured. They are as those of
// providers that upjet has made. +kubebuilder:object:generate=true +groupName=upjet.example.org
// +versionName=v1beta1
package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// SchemeGroupVersion is of all kinds here.
var SchemeGroupVersion = schema.GroupVersion{Group: "upjet.example.org", Version: "v1beta1"}

// SchemeBuilder adds the kinds to a scheme.
var SchemeBuilder = &scheme.Builder{GroupVersion: SchemeGroupVersion} //nolint:gochecknoglobals // Upjet's setup names it.
