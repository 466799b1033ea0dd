package controller

import (
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	cluster "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/cluster/v1alpha1"
	namespaced "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/namespaced/v1alpha1"
)

// In either scope a database is created once, becomes ready, publishes its connection details, and
// is deleted with its object.
func TestReconcileDatabase(t *testing.T) {
	cases := map[string]struct {
		reason string
		gvk    schema.GroupVersionKind
		mg     Managed
		secret types.NamespacedName
	}{
		"Cluster": {
			reason: "A cluster-scoped database should publish to the namespace that it names.",
			gvk:    cluster.GroupVersion.WithKind("Database"),
			mg: &cluster.Database{
				ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "1"},
				Spec: cluster.DatabaseSpec{ClusterManagedResourceSpec: xpv2.ClusterManagedResourceSpec{
					WriteConnectionSecretToReference: &xpv2.SecretReference{Name: "conn", Namespace: "secrets"},
					ManagementPolicies:               xpv2.ManagementPolicies{xpv2.ManagementActionAll},
					DeletionPolicy:                   xpv2.DeletionDelete,
				}},
			},
			secret: types.NamespacedName{Namespace: "secrets", Name: "conn"},
		},
		"Namespaced": {
			reason: "A namespaced database should publish to its own namespace.",
			gvk:    namespaced.GroupVersion.WithKind("Database"),
			mg: &namespaced.Database{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "db", UID: "1"},
				Spec: namespaced.DatabaseSpec{ManagedResourceSpec: xpv2.ManagedResourceSpec{
					WriteConnectionSecretToReference: &xpv2.LocalSecretReference{Name: "conn"},
					ManagementPolicies:               xpv2.ManagementPolicies{xpv2.ManagementActionAll},
				}},
			},
			secret: types.NamespacedName{Namespace: "team-a", Name: "conn"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cloud, sleep := newCloud(t)

			s := newScheme(t)
			if err := corev1.AddToScheme(s); err != nil {
				t.Fatalf("corev1.AddToScheme(...): %v", err)
			}

			kube := fake.NewClientBuilder().WithScheme(s).WithObjects(tc.mg).WithStatusSubresource(tc.mg).Build()
			r := newReconciler(&xpfake.Manager{Client: kube, Scheme: s}, tc.gvk, false, event.NewNopRecorder(),
				Options{Cloud: cloud, Poll: time.Minute, Log: logging.NewNopLogger()})
			key := client.ObjectKeyFromObject(tc.mg)

			step := func(want time.Duration) {
				t.Helper()

				got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
				if err != nil {
					t.Fatalf("\n%s\nr.Reconcile(...): %v", tc.reason, err)
				}

				if diff := cmp.Diff(want, got.RequeueAfter); diff != "" {
					t.Errorf("\n%s\nr.Reconcile(...): -want, +got:\n%s", tc.reason, diff)
				}
			}

			step(0)                   // Creates it, and is requeued by the rate limiter.
			step(unreadyPollInterval) // Observes that it is being created.
			sleep(time.Second)
			step(time.Minute) // Observes that it is available.

			if err := kube.Get(t.Context(), key, tc.mg); err != nil {
				t.Fatalf("kube.Get(...): %v", err)
			}

			for _, ct := range []xpv2.ConditionType{xpv2.TypeReady, xpv2.TypeSynced} {
				if c := tc.mg.GetCondition(ct); c.Status != corev1.ConditionTrue {
					t.Errorf("\n%s\n%s should be true, is %v", tc.reason, ct, c)
				}
			}

			secret := &corev1.Secret{}
			if err := kube.Get(t.Context(), tc.secret, secret); err != nil {
				t.Fatalf("\n%s\nkube.Get(...): %v", tc.reason, err)
			}

			rs, err := cloud.List(t.Context())
			if err != nil || len(rs) != 1 {
				t.Fatalf("\n%s\ncloud.List(...): want one resource, got: %v, %v", tc.reason, rs, err)
			}

			if diff := cmp.Diff(rs[0].ID, meta.GetExternalName(tc.mg)); diff != "" {
				t.Errorf("\n%s\nexternal name: -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(map[string][]byte(connectionDetails(rs[0])), secret.Data); diff != "" {
				t.Errorf("\n%s\nconnection secret: -want, +got:\n%s", tc.reason, diff)
			}

			if err := kube.Delete(t.Context(), tc.mg); err != nil {
				t.Fatalf("kube.Delete(...): %v", err)
			}

			step(0) // Deletes it, and is requeued by the rate limiter.
			step(0) // Observes that it is deleted, and removes the object's finalizer.

			if err := kube.Get(t.Context(), key, tc.mg); !apierrors.IsNotFound(err) {
				t.Errorf("\n%s\nkube.Get(...): want not found, got: %v", tc.reason, err)
			}

			es, err := cloud.Journal(t.Context(), 0, api.Create, api.Update, api.Delete)
			if err != nil {
				t.Fatalf("cloud.Journal(...): %v", err)
			}

			var ops []api.Op
			for _, e := range es {
				ops = append(ops, e.Op)
			}

			if diff := cmp.Diff([]api.Op{api.Create, api.Delete}, ops); diff != "" {
				t.Errorf("\n%s\ncloud.Journal(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSetup(t *testing.T) {
	s := newScheme(t)
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatalf("corev1.AddToScheme(...): %v", err)
	}

	// The manager is never started, so it needs no API server.
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, ctrl.Options{
		Scheme:     s,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatalf("ctrl.NewManager(...): %v", err)
	}

	for _, gv := range []schema.GroupVersion{cluster.GroupVersion, namespaced.GroupVersion} {
		for _, k := range api.Kinds() {
			if err := Setup(mgr, gv.WithKind(string(k)), Options{Log: logging.NewNopLogger()}); err != nil {
				t.Errorf("Every kind of the cloud should have a controller. Setup(...): %v", err)
			}
		}
	}

	if err := Setup(mgr, corev1.SchemeGroupVersion.WithKind("Secret"), Options{}); err == nil {
		t.Error("A kind that is not ours should have no controller. Setup(...): want error")
	}
}

type discovererFn func(groupVersion string) (*metav1.APIResourceList, error)

func (fn discovererFn) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	return fn(gv)
}

func TestServed(t *testing.T) {
	gv := cluster.GroupVersion

	cases := map[string]struct {
		reason string
		list   *metav1.APIResourceList
		err    error
		want   []schema.GroupVersionKind
		fails  bool
	}{
		"NoGroup": {
			reason: "A group that the API server does not know should have no kinds.",
			err:    apierrors.NewNotFound(schema.GroupResource{}, ""),
		},
		"Error": {
			reason: "We should not mistake an API server that is in trouble for one without our kinds.",
			err:    apierrors.NewServiceUnavailable("boom"),
			fails:  true,
		},
		"SomeKinds": {
			reason: "Only kinds that are ours and are served should be returned, once each.",
			list: &metav1.APIResourceList{APIResources: []metav1.APIResource{
				{Name: "networks", Kind: "Network"},
				{Name: "networks/status", Kind: "Network"},
				{Name: "buckets", Kind: "Bucket"},
				{Name: "cows", Kind: "Cow"},
			}},
			want: []schema.GroupVersionKind{gv.WithKind("Bucket"), gv.WithKind("Network")},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Served(discovererFn(func(string) (*metav1.APIResourceList, error) { return tc.list, tc.err }), gv)
			if (err != nil) != tc.fails {
				t.Errorf("\n%s\nServed(...): want error: %t, got: %v", tc.reason, tc.fails, err)
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nServed(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
