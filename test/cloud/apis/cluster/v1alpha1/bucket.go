package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/common"
)

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
// name of this object. +kubebuilder:object:root=true +kubebuilder:subresource:status
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
