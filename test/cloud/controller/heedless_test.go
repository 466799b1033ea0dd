package controller

import (
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	namespaced "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/namespaced/v1alpha1"
)

func TestHeedless(t *testing.T) {
	cases := map[string]struct {
		reason      string
		annotations map[string]string
		want        int
	}{
		"Heeded": {
			reason:      "A paused resource should not be reconciled.",
			annotations: map[string]string{meta.AnnotationKeyReconciliationPaused: "true"},
		},
		"NotHeeded": {
			reason:      "A heedless resource should be created though it is paused, and stay paused.",
			annotations: map[string]string{meta.AnnotationKeyReconciliationPaused: "true", AnnotationHeedless: "true"},
			want:        1,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cloud, _ := newCloud(t)
			s := newScheme(t)
			mg := &namespaced.Network{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "net", Annotations: tc.annotations},
				Spec: namespaced.NetworkSpec{ManagedResourceSpec: xpv2.ManagedResourceSpec{
					ManagementPolicies: xpv2.ManagementPolicies{xpv2.ManagementActionAll},
				}},
			}
			kube := fake.NewClientBuilder().WithScheme(s).WithObjects(mg).WithStatusSubresource(mg).Build()
			r := newReconciler(&xpfake.Manager{Client: kube, Scheme: s}, namespaced.GroupVersion.WithKind("Network"), false, event.NewNopRecorder(),
				Options{Cloud: cloud, Poll: time.Minute, Log: logging.NewNopLogger()})

			for range 3 {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(mg)}); err != nil {
					t.Fatalf("\n%s\nr.Reconcile(...): %v", tc.reason, err)
				}
			}

			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(mg), mg); err != nil {
				t.Fatalf("kube.Get(...): %v", err)
			}

			if !meta.IsPaused(mg) || mg.GetAnnotations()[annotationAside] != "" {
				t.Errorf("\n%s\nIts annotations are %v", tc.reason, mg.GetAnnotations())
			}

			rs, err := cloud.List(t.Context())
			if err != nil || len(rs) != tc.want {
				t.Errorf("\n%s\ncloud.List(...): want %d resources, got: %v, %v", tc.reason, tc.want, rs, err)
			}
		})
	}
}
