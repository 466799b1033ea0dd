package controller

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis"
	cluster "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/cluster/v1alpha1"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/common"
	namespaced "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/namespaced/v1alpha1"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/server"
)

var (
	_ resource.LegacyManaged = &cluster.Bucket{}
	_ resource.LegacyManaged = &cluster.Network{}
	_ resource.LegacyManaged = &cluster.Database{}
	_ resource.ModernManaged = &namespaced.Bucket{}
	_ resource.ModernManaged = &namespaced.Network{}
	_ resource.ModernManaged = &namespaced.Database{}
)

// newCloud returns a client of an empty cloud, and a function that advances its clock.
func newCloud(t *testing.T) (*api.Client, func(time.Duration)) {
	t.Helper()

	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	s, err := server.New(t.TempDir(), server.WithDatabaseDelay(time.Second), server.WithClock(func() time.Time { return now }))
	if err != nil {
		t.Fatalf("server.New(...): %v", err)
	}

	h := httptest.NewServer(s)

	t.Cleanup(func() {
		h.Close()

		_ = s.Close()
	})

	return api.NewClient(h.URL), func(d time.Duration) { now = now.Add(d) }
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()

	s := runtime.NewScheme()
	if err := apis.AddToScheme(s); err != nil {
		t.Fatalf("apis.AddToScheme(...): %v", err)
	}

	return s
}

// connect returns the client for the managed resource.
func connect(t *testing.T, c *api.Client, mg Managed) managed.TypedExternalClient[Managed] {
	t.Helper()

	e, err := NewConnector(c, "a", newScheme(t)).Connect(t.Context(), mg)
	if err != nil {
		t.Fatalf("Connect(...): %v", err)
	}

	return e
}

func named(mg Managed, externalName string) Managed {
	meta.SetExternalName(mg, externalName)
	return mg
}

func create(t *testing.T, c *api.Client, k api.Kind, id string, s api.Spec) string {
	t.Helper()

	r, err := c.Create(t.Context(), k, id, s)
	if err != nil {
		t.Fatalf("c.Create(...): %v", err)
	}

	return r.ID
}

func TestObserve(t *testing.T) {
	type want struct {
		exists, upToDate, ready bool
		keys                    int
	}

	cases := map[string]struct {
		reason string
		given  func(t *testing.T, c *api.Client, sleep func(time.Duration)) Managed
		want   want
	}{
		"NoExternalName": {
			reason: "Without an external name there is nothing to observe.",
			given:  func(*testing.T, *api.Client, func(time.Duration)) Managed { return &cluster.Network{} },
			want:   want{},
		},
		"Gone": {
			reason: "A resource that the cloud does not have should not exist.",
			given: func(*testing.T, *api.Client, func(time.Duration)) Managed {
				return named(&namespaced.Network{}, "net-gone")
			},
			want: want{},
		},
		"Bucket": {
			reason: "A bucket with the tags we want should be up to date.",
			given: func(t *testing.T, c *api.Client, _ func(time.Duration)) Managed {
				t.Helper()
				create(t, c, api.Bucket, "logs", api.Spec{})

				return named(&cluster.Bucket{Spec: cluster.BucketSpec{ForProvider: common.BucketParameters{Tags: map[string]string{}}}}, "logs")
			},
			want: want{exists: true, upToDate: true, ready: true},
		},
		"DriftedNetwork": {
			reason: "A network with another CIDR should not be up to date.",
			given: func(t *testing.T, c *api.Client, _ func(time.Duration)) Managed {
				t.Helper()

				id := create(t, c, api.Network, "", api.Spec{CIDR: "10.0.0.0/8"})

				return named(&namespaced.Network{Spec: namespaced.NetworkSpec{ForProvider: common.NetworkParameters{CIDR: "10.0.0.0/16"}}}, id)
			},
			want: want{exists: true, ready: true},
		},
		"CreatingDatabase": {
			reason: "A database that is still being created should not be ready, nor have connection details.",
			given: func(t *testing.T, c *api.Client, _ func(time.Duration)) Managed {
				t.Helper()
				return named(&cluster.Database{}, create(t, c, api.Database, "", api.Spec{}))
			},
			want: want{exists: true, upToDate: true},
		},
		"AvailableDatabase": {
			reason: "A database that is available should be ready, and have connection details.",
			given: func(t *testing.T, c *api.Client, sleep func(time.Duration)) Managed {
				t.Helper()

				id := create(t, c, api.Database, "", api.Spec{})

				sleep(time.Second)

				return named(&namespaced.Database{}, id)
			},
			want: want{exists: true, upToDate: true, ready: true, keys: 3},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, sleep := newCloud(t)
			mg := tc.given(t, c, sleep)

			o, err := connect(t, c, mg).Observe(t.Context(), mg)
			if err != nil {
				t.Fatalf("\n%s\ne.Observe(...): %v", tc.reason, err)
			}

			got := want{
				exists:   o.ResourceExists,
				upToDate: o.ResourceUpToDate,
				ready:    mg.GetCondition(xpv2.TypeReady).Status == "True",
				keys:     len(o.ConnectionDetails),
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("\n%s\ne.Observe(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCalls judges each call by the cloud's resources afterwards.
func TestCalls(t *testing.T) {
	bucket := &cluster.Bucket{ObjectMeta: metav1.ObjectMeta{
		Name:        "orders-logs",
		UID:         "1",
		Labels:      map[string]string{labelComposite: "orders"},
		Annotations: map[string]string{annotationCompositionResourceName: "logs", meta.AnnotationKeyExternalName: "logs"},
	}}
	ofBucket := api.Caller{
		Cluster:                 "a",
		ManagedBy:               "cloud.example.org/v1alpha1, Bucket, orders-logs, 1",
		Composite:               "orders",
		CompositionResourceName: "logs",
	}
	network := &namespaced.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "net", UID: "2"}}
	ofNetwork := api.Caller{Cluster: "a", ManagedBy: "cloud.m.example.org/v1alpha1, Network, team-a/net, 2"}

	cases := map[string]struct {
		reason string
		mg     Managed
		given  func(t *testing.T, c *api.Client)
		call   func(ctx context.Context, e managed.TypedExternalClient[Managed], mg Managed) error
		want   []api.Entry
		fails  bool
	}{
		"CreateBucket": {
			reason: "A bucket should be created by its external name, and the cloud should know the caller.",
			mg:     bucket,
			call:   doCreate,
			want:   []api.Entry{{Op: api.Create, Kind: api.Bucket, ID: "logs", Status: 201, Caller: ofBucket}},
		},
		"CreateBucketThatExists": {
			reason: "A bucket that exists should be an error, not ours.",
			mg:     bucket,
			given:  func(t *testing.T, c *api.Client) { t.Helper(); create(t, c, api.Bucket, "logs", api.Spec{}) },
			call:   doCreate,
			want:   []api.Entry{{Op: api.Create, Kind: api.Bucket, ID: "logs", Status: 409, Caller: ofBucket}},
			fails:  true,
		},
		"CreateNetworkAgain": {
			reason: "A network with an unknown external name should be created again, with an ID that the cloud chooses.",
			mg:     named(network.DeepCopy(), "net-gone"),
			call:   doCreate,
			want:   []api.Entry{{Op: api.Create, Kind: api.Network, Status: 201, Caller: ofNetwork}},
		},
		"UpdateBucket": {
			reason: "An update should be for the external name.",
			mg:     bucket,
			given:  func(t *testing.T, c *api.Client) { t.Helper(); create(t, c, api.Bucket, "logs", api.Spec{}) },
			call: func(ctx context.Context, e managed.TypedExternalClient[Managed], mg Managed) error {
				_, err := e.Update(ctx, mg)
				return err
			},
			want: []api.Entry{{Op: api.Update, Kind: api.Bucket, ID: "logs", Status: 200, Caller: ofBucket}},
		},
		"DeleteBucket": {
			reason: "A delete should be for the external name.",
			mg:     bucket,
			given:  func(t *testing.T, c *api.Client) { t.Helper(); create(t, c, api.Bucket, "logs", api.Spec{}) },
			call:   doDelete,
			want:   []api.Entry{{Op: api.Delete, Kind: api.Bucket, ID: "logs", Status: 204, Caller: ofBucket}},
		},
		"DeleteBucketThatIsGone": {
			reason: "It should be no error that what we delete is gone.",
			mg:     bucket,
			call:   doDelete,
			want:   []api.Entry{{Op: api.Delete, Kind: api.Bucket, ID: "logs", Status: 404, Caller: ofBucket}},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, _ := newCloud(t)
			if tc.given != nil {
				tc.given(t, c)
			}

			before, err := c.Journal(t.Context(), 0)
			if err != nil {
				t.Fatalf("c.Journal(...): %v", err)
			}

			mg := tc.mg.DeepCopyObject().(Managed) //nolint:forcetypeassert // It is a copy.

			err = tc.call(t.Context(), connect(t, c, mg), mg)
			if (err != nil) != tc.fails {
				t.Errorf("\n%s\nwant error: %t, got: %v", tc.reason, tc.fails, err)
			}

			got, err := c.Journal(t.Context(), int64(len(before)))
			if err != nil {
				t.Fatalf("c.Journal(...): %v", err)
			}

			ignore := cmpopts.IgnoreFields(api.Entry{}, "Seq", "Time")

			for i := range tc.want {
				// The cloud has chosen the ID, so the external-name should have it.
				if tc.want[i].ID == "" {
					tc.want[i].ID = meta.GetExternalName(mg)
				}
			}

			if diff := cmp.Diff(tc.want, got, ignore); diff != "" {
				t.Errorf("\n%s\nc.Journal(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func doCreate(ctx context.Context, e managed.TypedExternalClient[Managed], mg Managed) error {
	_, err := e.Create(ctx, mg)
	return err
}

func doDelete(ctx context.Context, e managed.TypedExternalClient[Managed], mg Managed) error {
	_, err := e.Delete(ctx, mg)
	return err
}
