package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/server"
)

// A clock stands still unless a test advances it.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newClock() *clock { return &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

// start starts a cloud that is stored in the directory, and returns a client of it and a function
// that stops it.
func start(t *testing.T, dir string, o ...server.Option) (*api.Client, func()) {
	t.Helper()

	s, err := server.New(dir, o...)
	if err != nil {
		t.Fatalf("server.New(...): %v", err)
	}

	h := httptest.NewServer(s)
	stop := func() {
		h.Close()

		_ = s.Close()
	}
	t.Cleanup(stop)

	return api.NewClient(h.URL), stop
}

// summary returns the parts of entries that a test can predict.
func summary(es []api.Entry) []api.Entry {
	out := make([]api.Entry, 0, len(es))
	for _, e := range es {
		out = append(out, api.Entry{Seq: e.Seq, Op: e.Op, Kind: e.Kind, ID: e.ID, Status: e.Status, Caller: e.Caller})
	}

	return out
}

func TestJournal(t *testing.T) {
	orders := api.Caller{Cluster: "a", ManagedBy: "cloud.example.org/v1alpha1, Bucket, orders, 1", Composite: "x", CompositionResourceName: "y"}

	cases := map[string]struct {
		reason string
		calls  func(ctx context.Context, c *api.Client)
		since  int64
		ops    []api.Op
		want   []api.Entry
	}{
		"EveryCall": {
			reason: "Every call for a resource should be in the journal with its outcome and its caller.",
			calls: func(ctx context.Context, c *api.Client) {
				_, _ = c.As(orders).Create(ctx, api.Bucket, "logs", api.Spec{})
				_, _ = c.As(orders).Get(ctx, api.Bucket, "logs")
				_, _ = c.Update(ctx, api.Bucket, "logs", api.Spec{Region: "here"})
				_ = c.Delete(ctx, api.Bucket, "logs")
			},
			want: []api.Entry{
				{Seq: 1, Op: api.Create, Kind: api.Bucket, ID: "logs", Status: http.StatusCreated, Caller: orders},
				{Seq: 2, Op: api.Read, Kind: api.Bucket, ID: "logs", Status: http.StatusOK, Caller: orders},
				{Seq: 3, Op: api.Update, Kind: api.Bucket, ID: "logs", Status: http.StatusOK},
				{Seq: 4, Op: api.Delete, Kind: api.Bucket, ID: "logs", Status: http.StatusNoContent},
			},
		},
		"Refused": {
			reason: "A call that is refused should be in the journal, or a test would not see a second create.",
			calls: func(ctx context.Context, c *api.Client) {
				_, _ = c.Create(ctx, api.Bucket, "logs", api.Spec{})
				_, _ = c.Create(ctx, api.Bucket, "logs", api.Spec{})
				_, _ = c.Create(ctx, api.Bucket, "", api.Spec{})
				_, _ = c.Create(ctx, api.Network, "mine", api.Spec{})
				_, _ = c.Get(ctx, api.Network, "gone")
				_, _ = c.Update(ctx, api.Database, "gone", api.Spec{})
				_ = c.Delete(ctx, api.Database, "gone")
			},
			want: []api.Entry{
				{Seq: 1, Op: api.Create, Kind: api.Bucket, ID: "logs", Status: http.StatusCreated},
				{Seq: 2, Op: api.Create, Kind: api.Bucket, ID: "logs", Status: http.StatusConflict},
				{Seq: 3, Op: api.Create, Kind: api.Bucket, Status: http.StatusBadRequest},
				{Seq: 4, Op: api.Create, Kind: api.Network, ID: "mine", Status: http.StatusBadRequest},
				{Seq: 5, Op: api.Read, Kind: api.Network, ID: "gone", Status: http.StatusNotFound},
				{Seq: 6, Op: api.Update, Kind: api.Database, ID: "gone", Status: http.StatusNotFound},
				{Seq: 7, Op: api.Delete, Kind: api.Database, ID: "gone", Status: http.StatusNotFound},
			},
		},
		"SinceAndOps": {
			reason: "Only the entries after the sequence number, and of the operations, should be returned.",
			calls: func(ctx context.Context, c *api.Client) {
				_, _ = c.Create(ctx, api.Bucket, "a", api.Spec{})
				_, _ = c.Create(ctx, api.Bucket, "b", api.Spec{})
				_, _ = c.Get(ctx, api.Bucket, "b")
				_ = c.Delete(ctx, api.Bucket, "a")
			},
			since: 1,
			ops:   []api.Op{api.Create, api.Delete},
			want: []api.Entry{
				{Seq: 2, Op: api.Create, Kind: api.Bucket, ID: "b", Status: http.StatusCreated},
				{Seq: 4, Op: api.Delete, Kind: api.Bucket, ID: "a", Status: http.StatusNoContent},
			},
		},
		"SinceTheFuture": {
			reason: "There is nothing after the last entry.",
			calls:  func(context.Context, *api.Client) {},
			since:  100,
			want:   []api.Entry{},
		},
		"Faults": {
			reason: "A fault should fail that many matching calls, and these calls should do nothing else.",
			calls: func(ctx context.Context, c *api.Client) {
				_ = c.Fail(ctx, api.Fault{Op: api.Create, Kind: api.Bucket, Status: http.StatusServiceUnavailable, Times: 2})
				_, _ = c.Create(ctx, api.Bucket, "a", api.Spec{})
				_, _ = c.Get(ctx, api.Bucket, "a")
				_, _ = c.Create(ctx, api.Bucket, "a", api.Spec{})
				_, _ = c.Create(ctx, api.Bucket, "a", api.Spec{})
			},
			want: []api.Entry{
				{Seq: 1, Op: api.Create, Kind: api.Bucket, ID: "a", Status: http.StatusServiceUnavailable},
				{Seq: 2, Op: api.Read, Kind: api.Bucket, ID: "a", Status: http.StatusNotFound},
				{Seq: 3, Op: api.Create, Kind: api.Bucket, ID: "a", Status: http.StatusServiceUnavailable},
				{Seq: 4, Op: api.Create, Kind: api.Bucket, ID: "a", Status: http.StatusCreated},
			},
		},
		"Hidden": {
			reason: "A fault that comes after a call should spare one of each caller, and no more.",
			calls: func(ctx context.Context, c *api.Client) {
				_ = c.Fail(ctx, api.Fault{Op: api.Read, Status: http.StatusNotFound, Times: 100, After: 1})
				_, _ = c.Create(ctx, api.Bucket, "a", api.Spec{})
				for _, by := range []string{"x", "x", "y", "x", "y"} {
					_, _ = c.As(api.Caller{ManagedBy: by}).Get(ctx, api.Bucket, "a")
				}
			},
			ops: []api.Op{api.Read},
			want: []api.Entry{
				{Seq: 2, Op: api.Read, Kind: api.Bucket, ID: "a", Status: http.StatusOK, Caller: api.Caller{ManagedBy: "x"}},
				{Seq: 3, Op: api.Read, Kind: api.Bucket, ID: "a", Status: http.StatusNotFound, Caller: api.Caller{ManagedBy: "x"}},
				{Seq: 4, Op: api.Read, Kind: api.Bucket, ID: "a", Status: http.StatusOK, Caller: api.Caller{ManagedBy: "y"}},
				{Seq: 5, Op: api.Read, Kind: api.Bucket, ID: "a", Status: http.StatusNotFound, Caller: api.Caller{ManagedBy: "x"}},
				{Seq: 6, Op: api.Read, Kind: api.Bucket, ID: "a", Status: http.StatusNotFound, Caller: api.Caller{ManagedBy: "y"}},
			},
		},
		"Flickers": {
			reason: "A fault that comes again should spare a call before each that fails.",
			calls: func(ctx context.Context, c *api.Client) {
				_ = c.Fail(ctx, api.Fault{Op: api.Read, Status: http.StatusNotFound, Times: 100, After: 1, Again: true})
				_, _ = c.Create(ctx, api.Bucket, "a", api.Spec{})
				for range 4 {
					_, _ = c.Get(ctx, api.Bucket, "a")
				}
			},
			ops: []api.Op{api.Read},
			want: []api.Entry{
				{Seq: 2, Op: api.Read, Kind: api.Bucket, ID: "a", Status: http.StatusOK},
				{Seq: 3, Op: api.Read, Kind: api.Bucket, ID: "a", Status: http.StatusNotFound},
				{Seq: 4, Op: api.Read, Kind: api.Bucket, ID: "a", Status: http.StatusOK},
				{Seq: 5, Op: api.Read, Kind: api.Bucket, ID: "a", Status: http.StatusNotFound},
			},
		},
		"Lingers": {
			reason: "A delete that lingers should be accepted as often as it is asked for, and done once at the release.",
			calls: func(ctx context.Context, c *api.Client) {
				_ = c.Fail(ctx, api.Fault{Op: api.Delete, Linger: true, Times: 2})
				_, _ = c.Create(ctx, api.Bucket, "a", api.Spec{})
				_ = c.As(orders).Delete(ctx, api.Bucket, "a")
				_ = c.As(orders).Delete(ctx, api.Bucket, "a")
				_, _ = c.Get(ctx, api.Bucket, "a")
				_ = c.Release(ctx)
				_ = c.Release(ctx)
				_, _ = c.Get(ctx, api.Bucket, "a")
			},
			since: 1,
			want: []api.Entry{
				{Seq: 2, Op: api.Delete, Kind: api.Bucket, ID: "a", Status: http.StatusAccepted, Caller: orders},
				{Seq: 3, Op: api.Delete, Kind: api.Bucket, ID: "a", Status: http.StatusAccepted, Caller: orders},
				{Seq: 4, Op: api.Read, Kind: api.Bucket, ID: "a", Status: http.StatusOK},
				{Seq: 5, Op: api.Delete, Kind: api.Bucket, ID: "a", Status: http.StatusNoContent, Caller: orders},
				{Seq: 6, Op: api.Read, Kind: api.Bucket, ID: "a", Status: http.StatusNotFound},
			},
		},
		"Recovered": {
			reason: "A cloud that has recovered should fail no more calls.",
			calls: func(ctx context.Context, c *api.Client) {
				_ = c.Fail(ctx, api.Fault{Status: http.StatusTooManyRequests, Times: 100})
				_, _ = c.Create(ctx, api.Bucket, "a", api.Spec{})
				_ = c.Recover(ctx)
				_, _ = c.Create(ctx, api.Bucket, "a", api.Spec{})
			},
			want: []api.Entry{
				{Seq: 1, Op: api.Create, Kind: api.Bucket, ID: "a", Status: http.StatusTooManyRequests},
				{Seq: 2, Op: api.Create, Kind: api.Bucket, ID: "a", Status: http.StatusCreated},
			},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, _ := start(t, t.TempDir())
			tc.calls(t.Context(), c)

			got, err := c.Journal(t.Context(), tc.since, tc.ops...)
			if err != nil {
				t.Fatalf("\n%s\nc.Journal(...): %v", tc.reason, err)
			}

			if diff := cmp.Diff(tc.want, summary(got)); diff != "" {
				t.Errorf("\n%s\nc.Journal(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A stalled call is carried out and written to the journal. It is answered when it is released, or
// never if its caller does not wait.
func TestStall(t *testing.T) {
	c, _ := start(t, t.TempDir())
	caller := api.Caller{ManagedBy: "cloud.example.org/v1alpha1, Network, slow, 1"}

	if err := c.Fail(t.Context(), api.Fault{Op: api.Create, By: ", slow,", Stall: true, Times: 2}); err != nil {
		t.Fatalf("c.Fail(...): %v", err)
	}

	if _, err := c.Create(t.Context(), api.Network, "", api.Spec{}); err != nil {
		t.Fatalf("A call of another caller should not be stalled. c.Create(...): %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	abandoned, answered := make(chan error, 1), make(chan error, 1)

	go func() {
		_, err := c.As(caller).Create(ctx, api.Network, "", api.Spec{})
		abandoned <- err
	}()

	await := func(n int) {
		t.Helper()

		for deadline := time.Now().Add(10 * time.Second); ; {
			es, err := c.Journal(t.Context(), 0, api.Create)
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("A stalled call should be in the journal. Got: %v, %v", es, err)
			}

			if len(es) == n && es[n-1].Status == http.StatusCreated {
				return
			}
		}
	}
	await(2)
	cancel()

	if err := <-abandoned; err == nil {
		t.Error("A stalled call that was given up should fail. Want error")
	}

	go func() {
		_, err := c.As(caller).Create(t.Context(), api.Network, "", api.Spec{})
		answered <- err
	}()

	await(3)

	select {
	case err := <-answered:
		t.Errorf("A stalled call should not be answered before it is released. Got: %v", err)
	default:
	}

	if err := c.Release(t.Context()); err != nil {
		t.Fatalf("c.Release(...): %v", err)
	}

	if err := <-answered; err != nil {
		t.Errorf("A released call should have been successful. c.Create(...): %v", err)
	}

	if rs, err := c.List(t.Context()); err != nil || len(rs) != 3 {
		t.Errorf("Each call should have made a network. c.List(...): %v, %v", rs, err)
	}
}

// A cloud stops, and starts again with all its resources.
func TestRestart(t *testing.T) {
	dir, clk := t.TempDir(), newClock()
	creator := api.Caller{Cluster: "old", ManagedBy: "creator"}
	adopter := api.Caller{Cluster: "new", ManagedBy: "adopter"}

	c, stop := start(t, dir, server.WithClock(clk.Now), server.WithDatabaseDelay(time.Second))

	db, err := c.As(creator).Create(t.Context(), api.Database, "", api.Spec{Engine: "postgres", SizeGB: 1})
	if err != nil {
		t.Fatalf("c.Create(...): %v", err)
	}

	for _, name := range []string{"kept", "lost"} {
		if _, err := c.As(creator).Create(t.Context(), api.Bucket, name, api.Spec{Tags: map[string]string{"a": "b"}}); err != nil {
			t.Fatalf("c.Create(...): %v", err)
		}
	}

	if err := c.Delete(t.Context(), api.Bucket, "lost"); err != nil {
		t.Fatalf("c.Delete(...): %v", err)
	}

	clk.now = clk.now.Add(time.Second)

	if _, err := c.As(adopter).Update(t.Context(), api.Database, db.ID, api.Spec{Engine: "postgres", SizeGB: 2}); err != nil {
		t.Fatalf("c.Update(...): %v", err)
	}

	if _, err := c.As(adopter).Get(t.Context(), api.Bucket, "kept"); err != nil {
		t.Fatalf("c.Get(...): %v", err)
	}

	if _, err := c.Get(t.Context(), api.Bucket, "kept"); err != nil { // A test's read must not make it the manager.
		t.Fatalf("c.Get(...): %v", err)
	}

	wantResources, _ := c.List(t.Context())
	wantJournal, _ := c.Journal(t.Context(), 0)

	stop()

	// The process was killed during a write.
	f, err := os.OpenFile(filepath.Join(dir, "journal.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatalf("os.OpenFile(...): %v", err)
	}

	_, _ = f.WriteString(`{"seq":8,"op":"del`)
	_ = f.Close()

	c, _ = start(t, dir, server.WithClock(clk.Now))
	gotResources, _ := c.List(t.Context())
	gotJournal, _ := c.Journal(t.Context(), 0)

	if diff := cmp.Diff(wantResources, gotResources); diff != "" {
		t.Errorf("\nA cloud should have the resources it had before.\nc.List(...): -before, +after:\n%s", diff)
	}

	if diff := cmp.Diff(wantJournal, gotJournal); diff != "" {
		t.Errorf("\nA cloud should have the journal it had before.\nc.Journal(...): -before, +after:\n%s", diff)
	}

	want := []api.Resource{
		{Kind: api.Bucket, ID: "kept", State: api.Available, Spec: api.Spec{Tags: map[string]string{"a": "b"}}, CreatedBy: creator, ManagedBy: adopter},
		{Kind: api.Database, ID: db.ID, State: api.Available, Spec: api.Spec{Engine: "postgres", SizeGB: 2}, CreatedBy: creator, ManagedBy: adopter},
	}
	if diff := cmp.Diff(want, gotResources, cmpopts.IgnoreFields(api.Resource{}, "CreatedAt", "AvailableAt", "Connection")); diff != "" {
		t.Errorf("\nA resource should have its creator and its present manager.\nc.List(...): -want, +got:\n%s", diff)
	}

	if _, err := c.Get(t.Context(), api.Bucket, "kept"); err != nil {
		t.Fatalf("c.Get(...): %v", err)
	}

	after, _ := c.Journal(t.Context(), int64(len(wantJournal)))
	if len(after) != 1 || after[0].Seq != int64(len(wantJournal))+1 {
		t.Errorf("The journal should go on where it ended, without the entry that was cut off. Got: %v", after)
	}
}
