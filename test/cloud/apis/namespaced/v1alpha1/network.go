package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/common"
)

// A NetworkSpec is what a Network should be.
type NetworkSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider common.NetworkParameters `json:"forProvider"`
}

// A NetworkStatus is what a Network was seen to be.
type NetworkStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	AtProvider common.Observation `json:"atProvider,omitempty"`
}

// A Network is a range of addresses. The cloud makes up its external name.
// +kubebuilder:object:root=true +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,cloud}
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
