package server_test

import (
	"context"
	"errors"
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

// start starts a cloud that is stored in the directory, and returns a client of it and a function
// that stops it.
func start(t *testing.T, dir string) (*api.Client, func()) {
	t.Helper()

	s, err := server.New(dir, 0)
	if err != nil {
		t.Fatalf("server.New(...): %v", err)
	}

	h := httptest.NewServer(s)
	t.Cleanup(h.Close)

	return api.NewClient(h.URL), h.Close
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
		"RecoveredFor": {
			reason: "The faults of other callers should stay.",
			calls: func(ctx context.Context, c *api.Client) {
				_ = c.Fail(ctx, api.Fault{By: "a", Status: http.StatusTooManyRequests, Times: 100})
				_ = c.Fail(ctx, api.Fault{By: "b", Status: http.StatusConflict, Times: 100})
				_ = c.RecoverBy(ctx, "a")
				_, _ = c.As(api.Caller{ManagedBy: "a, b"}).Create(ctx, api.Bucket, "a", api.Spec{})
			},
			want: []api.Entry{{Seq: 1, Op: api.Create, Kind: api.Bucket, ID: "a", Status: http.StatusConflict, Caller: api.Caller{ManagedBy: "a, b"}}},
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

	// stall makes a call, and returns its error once it is in the journal as the n-th.
	stall := func(ctx context.Context, n int) <-chan error {
		t.Helper()

		answered := make(chan error, 1)

		go func() {
			_, err := c.As(caller).Create(ctx, api.Network, "", api.Spec{})
			answered <- err
		}()

		for deadline := time.Now().Add(10 * time.Second); ; {
			es, err := c.Journal(t.Context(), 0, api.Create) //nolint:contextcheck // The test ends, not the call.
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("A stalled call should be in the journal. Got: %v, %v", es, err)
			}

			if len(es) == n && es[n-1].Status == http.StatusCreated {
				return answered
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	abandoned := stall(ctx, 2)

	cancel()

	if err := <-abandoned; err == nil {
		t.Error("A stalled call that was given up should fail. Want error")
	}

	answered := stall(t.Context(), 3)

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
}

// A cloud stops, and starts again with all its resources, without the entry in whose write it was
// killed.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	creator, adopter := api.Caller{Cluster: "old", ManagedBy: "creator"}, api.Caller{Cluster: "new", ManagedBy: "adopter"}
	c, stop := start(t, dir)

	db, err := c.As(creator).Create(t.Context(), api.Database, "", api.Spec{Engine: api.EngineOnce})
	for _, name := range []string{"kept", "lost"} {
		_, more := c.As(creator).Create(t.Context(), api.Bucket, name, api.Spec{Tags: map[string]string{"a": "b"}})
		err = errors.Join(err, more)
	}

	_, adopted := c.As(adopter).Update(t.Context(), api.Database, db.ID, api.Spec{Engine: api.EngineOnce, SizeGB: 2})
	_, read := c.As(adopter).Get(t.Context(), api.Bucket, "kept")
	_, again := c.Get(t.Context(), api.Bucket, "kept") // A test's read must not make it the manager.

	if err := errors.Join(err, adopted, read, again, c.Delete(t.Context(), api.Bucket, "lost")); err != nil {
		t.Fatal(err)
	}

	for n := range 2 {
		got, err := c.Get(t.Context(), api.Database, db.ID)
		if told := got.Connection != nil; told != (n == 0) || err != nil {
			t.Errorf("The connection should be read once. Read %d: %v, %v", n, got.Connection, err)
		}
	}

	wantJournal, _ := c.Journal(t.Context(), 0)

	stop()

	f, err := os.OpenFile(filepath.Join(dir, "journal.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatalf("os.OpenFile(...): %v", err)
	}

	_, _ = f.WriteString(`{"seq":8,"op":"del`)
	_ = f.Close()

	c, _ = start(t, dir)
	gotResources, _ := c.List(t.Context())
	_, _ = c.Get(t.Context(), api.Bucket, "kept")
	gotJournal, _ := c.Journal(t.Context(), 0)

	if n := len(wantJournal); len(gotJournal) != n+1 || gotJournal[n].Seq != int64(n)+1 || !cmp.Equal(wantJournal, gotJournal[:n]) {
		t.Errorf("\nA cloud should go on with the journal it had before.\nc.Journal(...): -before, +after:\n%s", cmp.Diff(wantJournal, gotJournal))
	}

	want := []api.Resource{
		{Kind: api.Bucket, ID: "kept", State: api.Available, Spec: api.Spec{Tags: map[string]string{"a": "b"}}, CreatedBy: creator, ManagedBy: adopter},
		{Kind: api.Database, ID: db.ID, State: api.Available, Spec: api.Spec{Engine: api.EngineOnce, SizeGB: 2}, CreatedBy: creator, ManagedBy: adopter},
	}
	if diff := cmp.Diff(want, gotResources, cmpopts.IgnoreFields(api.Resource{}, "CreatedAt", "AvailableAt", "Connection")); diff != "" {
		t.Errorf("\nA resource should have its creator and its present manager.\nc.List(...): -want, +got:\n%s", diff)
	}
}
