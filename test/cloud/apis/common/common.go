// Package common holds what the cluster-scoped and the namespaced kinds have in common: the
// settings and the observations of a resource, and what they are to the cloud.
// +kubebuilder:object:generate=true
package common

import "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"

// BucketParameters are what can be set of a bucket. Its name is its external name.
type BucketParameters struct {
	// Region the bucket is in.
	// +kubebuilder:default=nowhere
	// +optional
	Region string `json:"region,omitempty"`

	// Tags of the bucket.
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
}

// Spec is what to ask the cloud for.
func (p BucketParameters) Spec() api.Spec { return api.Spec{Region: p.Region, Tags: p.Tags} }

// NetworkParameters are what can be set of a network.
type NetworkParameters struct {
	// CIDR is the range of addresses of the network.
	CIDR string `json:"cidr"`
}

// Spec is what to ask the cloud for.
func (p NetworkParameters) Spec() api.Spec { return api.Spec{CIDR: p.CIDR} }

// DatabaseParameters are what can be set of a database.
type DatabaseParameters struct {
	// Engine of the database.
	// +kubebuilder:default=postgres
	// +optional
	Engine string `json:"engine,omitempty"`

	// SizeGB is the size of the database.
	// +kubebuilder:default=10
	// +optional
	SizeGB int `json:"sizeGB,omitempty"`

	// PasswordSecretRef names the key of a Secret that has the password of the database. Where
	// there is none the provider makes one, as upjet's does.
	// +optional
	PasswordSecretRef *SecretKey `json:"passwordSecretRef,omitempty"`
}

// A SecretKey is a key of a Secret.
type SecretKey struct {
	// Namespace of the Secret; that of the resource, if it has one.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the Secret.
	Name string `json:"name"`

	// Key in the Secret.
	Key string `json:"key"`
}

// Spec is what to ask the cloud for.
func (p DatabaseParameters) Spec() api.Spec { return api.Spec{Engine: p.Engine, SizeGB: p.SizeGB} }

// An Observation is what was seen of a resource in the cloud.
type Observation struct {
	// ID of the resource in the cloud.
	// +optional
	ID string `json:"id,omitempty"`

	// State of the resource in the cloud: creating or available.
	// +optional
	State string `json:"state,omitempty"`
}

// A DatabaseObservation is what was seen of a database in the cloud.
type DatabaseObservation struct {
	Observation `json:",inline"`

	// Endpoint of the database, once it is available.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
}

// Observe returns what was seen of the resource.
func Observe(r api.Resource) Observation { return Observation{ID: r.ID, State: string(r.State)} }

// ObserveDatabase returns what was seen of the database.
func ObserveDatabase(r api.Resource) DatabaseObservation {
	o := DatabaseObservation{Observation: Observe(r)}
	if r.Connection != nil {
		o.Endpoint = r.Connection.Endpoint
	}

	return o
}
