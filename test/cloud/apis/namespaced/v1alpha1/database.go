package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/common"
)

// A DatabaseSpec is what a Database should be.
type DatabaseSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider common.DatabaseParameters `json:"forProvider"`
}

// A DatabaseStatus is what a Database was seen to be.
type DatabaseStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	AtProvider common.DatabaseObservation `json:"atProvider,omitempty"`
}

// A Database is a database that takes a while to become available. The cloud makes up its external
// name, and gives it an endpoint, a username and a password. +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,cloud}
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
