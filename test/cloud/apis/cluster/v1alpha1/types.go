// Package v1alpha1 holds the kinds that are cluster-scoped, as in Crossplane v1: they have a
// deletion policy, and write their connection secret to any namespace.
// +kubebuilder:object:generate=true
// +groupName=cloud.example.org
// +versionName=v1alpha1
package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/common"
)

// GroupVersion of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "cloud.example.org", Version: "v1alpha1"}

// AddToScheme adds the kinds in this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Bucket{}, &BucketList{}, &Network{}, &NetworkList{}, &Database{}, &DatabaseList{})
	metav1.AddToGroupVersion(s, GroupVersion)

	return nil
}

// A BucketSpec is what a Bucket should be.
type BucketSpec struct {
	xpv2.ClusterManagedResourceSpec `json:",inline"`

	ForProvider common.BucketParameters `json:"forProvider"`
}

// A BucketStatus is what a Bucket was seen to be.
type BucketStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	AtProvider common.Observation `json:"atProvider,omitempty"`
}

// A Bucket is a place for objects. Its external name is the name of the bucket, and by default the
// name of this object.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={crossplane,managed,cloud}
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="EXTERNAL-NAME",type="string",JSONPath=".metadata.annotations.crossplane\\.io/external-name"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Bucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BucketSpec   `json:"spec"`
	Status BucketStatus `json:"status,omitempty"`
}

// CloudKind is what the cloud calls this kind.
func (mg *Bucket) CloudKind() api.Kind { return api.Bucket }

// Desired is what to ask the cloud for.
func (mg *Bucket) Desired() api.Spec { return mg.Spec.ForProvider.Spec() }

// SetObserved records what was seen of the resource in the cloud.
func (mg *Bucket) SetObserved(r api.Resource) { mg.Status.AtProvider = common.Observe(r) }

// A BucketList is a list of Buckets.
// +kubebuilder:object:root=true
type BucketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Bucket `json:"items"`
}

// A DatabaseSpec is what a Database should be.
type DatabaseSpec struct {
	xpv2.ClusterManagedResourceSpec `json:",inline"`

	ForProvider common.DatabaseParameters `json:"forProvider"`
}

// A DatabaseStatus is what a Database was seen to be.
type DatabaseStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	AtProvider common.DatabaseObservation `json:"atProvider,omitempty"`
}

// A Database is a database that takes a while to become available. The cloud makes up its external
// name, and gives it an endpoint, a username and a password.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={crossplane,managed,cloud}
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="EXTERNAL-NAME",type="string",JSONPath=".metadata.annotations.crossplane\\.io/external-name"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DatabaseSpec   `json:"spec"`
	Status DatabaseStatus `json:"status,omitempty"`
}

// CloudKind is what the cloud calls this kind.
func (mg *Database) CloudKind() api.Kind { return api.Database }

// Desired is what to ask the cloud for.
func (mg *Database) Desired() api.Spec { return mg.Spec.ForProvider.Spec() }

// PasswordKey is where its password is; nil if the cloud alone knows it.
func (mg *Database) PasswordKey() *common.SecretKey { return mg.Spec.ForProvider.PasswordSecretRef }

// SetObserved records what was seen of the resource in the cloud.
func (mg *Database) SetObserved(r api.Resource) { mg.Status.AtProvider = common.ObserveDatabase(r) }

// A DatabaseList is a list of Databases.
// +kubebuilder:object:root=true
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Database `json:"items"`
}

// A NetworkSpec is what a Network should be.
type NetworkSpec struct {
	xpv2.ClusterManagedResourceSpec `json:",inline"`

	ForProvider common.NetworkParameters `json:"forProvider"`
}

// A NetworkStatus is what a Network was seen to be.
type NetworkStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	AtProvider common.Observation `json:"atProvider,omitempty"`
}

// A Network is a range of addresses. The cloud makes up its external name.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={crossplane,managed,cloud}
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="EXTERNAL-NAME",type="string",JSONPath=".metadata.annotations.crossplane\\.io/external-name"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Network struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NetworkSpec   `json:"spec"`
	Status NetworkStatus `json:"status,omitempty"`
}

// CloudKind is what the cloud calls this kind.
func (mg *Network) CloudKind() api.Kind { return api.Network }

// Desired is what to ask the cloud for.
func (mg *Network) Desired() api.Spec { return mg.Spec.ForProvider.Spec() }

// SetObserved records what was seen of the resource in the cloud.
func (mg *Network) SetObserved(r api.Resource) { mg.Status.AtProvider = common.Observe(r) }

// A NetworkList is a list of Networks.
// +kubebuilder:object:root=true
type NetworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Network `json:"items"`
}
