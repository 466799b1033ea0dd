package main

import (
	"strings"
	"testing"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	namespacedapis "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/apis/namespaced"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/apis/namespaced/upjet/v1beta1"
	configv1beta1 "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/apis/namespaced/v1beta1"
)

// TestToken checks that a managed resource gets the credentials of its ProviderConfig, or an error
// with the reason, and that the ProviderConfig records the usage.
func TestToken(t *testing.T) {
	config := &configv1beta1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	config.Spec.Credentials.Source = xpv1.CredentialsSourceSecret
	config.Spec.Credentials.SecretRef = &xpv1.SecretKeySelector{SecretReference: xpv1.SecretReference{Namespace: "keys", Name: "cloud"}, Key: "credentials"}
	none := &configv1beta1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	none.Spec.Credentials.Source = xpv1.CredentialsSourceNone
	secret := func(key string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "keys", Name: "cloud"}, Data: map[string][]byte{key: []byte(`{"token":"t"}`)}}
	}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    string
		wrong   string
		used    int
	}{
		"Found":    {reason: "The Secret has them.", objects: []client.Object{config, secret("credentials")}, want: "t", used: 1},
		"None":     {reason: "None are needed.", objects: []client.Object{none}, used: 1},
		"NoSecret": {reason: "The Secret is not there.", objects: []client.Object{config}, wrong: "cannot get credentials secret", used: 1},
		"NoKey":    {reason: "The Secret has another key.", objects: []client.Object{config, secret("other")}, wrong: "cannot unmarshal credentials", used: 1},
		"NoConfig": {reason: "There is no ProviderConfig.", wrong: "cannot get the referenced ProviderConfig"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			if err := clientgoscheme.AddToScheme(s); err != nil {
				t.Fatal(err)
			}
			if err := namespacedapis.AddToScheme(s); err != nil {
				t.Fatal(err)
			}
			kube := fake.NewClientBuilder().WithScheme(s).WithObjects(tc.objects...).Build()
			mg := &v1beta1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "n", UID: "1"}}
			mg.SetProviderConfigReference(&xpv1.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "default"})

			got, err := token(t.Context(), kube, mg)
			if got != tc.want || (err != nil) != (tc.wrong != "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("\n%s\ntoken(...): want %q and error %q, got %q and %v", tc.reason, tc.want, tc.wrong, got, err)
			}
			usages := &configv1beta1.ProviderConfigUsageList{}
			if err := kube.List(t.Context(), usages); err != nil {
				t.Fatal(err)
			}
			if len(usages.Items) != tc.used {
				t.Errorf("\n%s\nThere are %d ProviderConfigUsages, not %d", tc.reason, len(usages.Items), tc.used)
			}
		})
	}
}
