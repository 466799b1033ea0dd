package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	namespaced "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/namespaced/v1alpha1"
)

// TestReconcileAsync checks what the provider of an asynchronous kind knows of a resource after its
// create, and after a restart of the provider.
func TestReconcileAsync(t *testing.T) {
	all := xpv2.ManagementPolicies{xpv2.ManagementActionAll}
	noLateInitialize := xpv2.ManagementPolicies{
		xpv2.ManagementActionObserve, xpv2.ManagementActionCreate, xpv2.ManagementActionUpdate, xpv2.ManagementActionDelete,
	}

	type want struct {
		Named   bool   // The external-name is the ID of the first resource.
		ID      string // The prefix of that in the status' ID.
		Creates int    // After the provider was restarted.
	}

	cases := map[string]struct {
		reason   string
		mode     Mode
		policies xpv2.ManagementPolicies
		want     want
	}{
		"LateInitialize": {
			reason:   "The external name should be kept when the resource is late-initialized.",
			mode:     Async,
			policies: all,
			want:     want{Named: true, Creates: 1},
		},
		"NoLateInitialize": {
			reason:   "Without LateInitialize the external name should be lost with the provider's memory, and the resource made twice.",
			mode:     Async,
			policies: noLateInitialize,
			want:     want{Creates: 2},
		},
		"ARN": {
			reason:   "The ID in the status should not be the external name.",
			mode:     AsyncARN,
			policies: all,
			want:     want{Named: true, ID: "arn:cloud:network:", Creates: 1},
		},
		"Unruled": {
			reason: "Without managementPolicies a resource is not paused where the provider has none.",
			mode:   Unruled,
			want:   want{Named: true, Creates: 1},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cloud, _ := newCloud(t)
			mg := &namespaced.Network{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "net", UID: "1"},
				Spec:       namespaced.NetworkSpec{ManagedResourceSpec: xpv2.ManagedResourceSpec{ManagementPolicies: tc.policies}},
			}
			gvk := namespaced.GroupVersion.WithKind("Network")
			s := newScheme(t)
			kube := fake.NewClientBuilder().WithScheme(s).WithObjects(mg).WithStatusSubresource(mg).Build()
			key := client.ObjectKeyFromObject(mg)

			// run runs a provider from its start until it has nothing more to do.
			run := func() {
				r := newReconciler(&xpfake.Manager{Client: kube, Scheme: s}, gvk, false, event.NewNopRecorder(), Options{
					Cloud: cloud, Poll: time.Minute, Log: logging.NewNopLogger(), Modes: Modes{gvk.GroupKind(): tc.mode},
				})

				for deadline := time.Now().Add(10 * time.Second); ; {
					got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
					if err != nil || time.Now().After(deadline) {
						t.Fatalf("\n%s\nr.Reconcile(...): %v, %v", tc.reason, got, err)
					}

					if got.RequeueAfter == time.Minute {
						return
					}
				}
			}

			run()
			rs, err := cloud.List(t.Context())
			if err != nil || len(rs) != 1 {
				t.Fatalf("\n%s\ncloud.List(...): want one resource, got: %v, %v", tc.reason, rs, err)
			}
			first := rs[0].ID

			run()
			if err := kube.Get(t.Context(), key, mg); err != nil {
				t.Fatalf("kube.Get(...): %v", err)
			}

			rs, err = cloud.List(t.Context())
			if err != nil {
				t.Fatalf("cloud.List(...): %v", err)
			}

			got := want{Named: meta.GetExternalName(mg) == first, ID: mg.Status.AtProvider.ID, Creates: len(rs)}
			for _, r := range rs {
				if prefix, ok := strings.CutSuffix(got.ID, r.ID); ok {
					got.ID = prefix
				}
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nafter a restart: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestModes(t *testing.T) {
	cases := map[string]struct {
		reason string
		kinds  string
		want   Modes
		fails  bool
	}{
		"Kinds": {
			reason: "Each kind of a list should be in the mode.",
			kinds:  "Database.cloud.example.org,Network.cloud.m.example.org",
			want: Modes{
				schema.GroupKind{Group: "cloud.example.org", Kind: "Database"}:  Async,
				schema.GroupKind{Group: "cloud.m.example.org", Kind: "Network"}: Async,
			},
		},
		"NoGroup": {
			reason: "A kind of no group is none of this provider's.",
			kinds:  "Database",
			want:   Modes{},
			fails:  true,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Modes{}
			if err := got.Set(Async, tc.kinds); (err != nil) != tc.fails {
				t.Errorf("\n%s\nSet(...): %v", tc.reason, err)
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nSet(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
