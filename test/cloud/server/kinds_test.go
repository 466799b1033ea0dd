package server_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/server"
)

func TestDatabaseBecomesAvailable(t *testing.T) {
	clk := newClock()
	c, _ := start(t, t.TempDir(), server.WithClock(clk.Now), server.WithDatabaseDelay(3*time.Second))

	db, err := c.Create(t.Context(), api.Database, "", api.Spec{Engine: "postgres"})
	if err != nil {
		t.Fatalf("c.Create(...): %v", err)
	}

	var connection *api.Connection

	for _, step := range []struct {
		reason  string
		elapsed time.Duration
		want    api.State
	}{
		{reason: "A database should be creating at first.", elapsed: 0, want: api.Creating},
		{reason: "A database should be creating until the delay is over.", elapsed: 2999 * time.Millisecond, want: api.Creating},
		{reason: "A database should be available when the delay is over.", elapsed: 3 * time.Second, want: api.Available},
		{reason: "A database should stay available.", elapsed: time.Hour, want: api.Available},
	} {
		clk.now = newClock().now.Add(step.elapsed)

		got, err := c.Get(t.Context(), api.Database, db.ID)
		if err != nil {
			t.Fatalf("\n%s\nc.Get(...): %v", step.reason, err)
		}

		if diff := cmp.Diff(step.want, got.State); diff != "" {
			t.Errorf("\n%s\nc.Get(...): -want, +got:\n%s", step.reason, diff)
		}

		if hasConnection := got.Connection != nil; hasConnection != (step.want == api.Available) {
			t.Errorf("\n%s\nIt should have a connection only then. Got: %v", step.reason, got.Connection)
		}

		if connection != nil && !cmp.Equal(connection, got.Connection) {
			t.Errorf("\n%s\nIts connection should never change: -before, +after:\n%s", step.reason, cmp.Diff(connection, got.Connection))
		}

		connection = got.Connection
	}
}

func TestNetworkHasItsOwnID(t *testing.T) {
	c, _ := start(t, t.TempDir())

	a, errA := c.Create(t.Context(), api.Network, "", api.Spec{CIDR: "10.0.0.0/8"})
	b, errB := c.Create(t.Context(), api.Network, "", api.Spec{CIDR: "10.0.0.0/8"})

	if errA != nil || errB != nil {
		t.Fatalf("c.Create(...): %v, %v", errA, errB)
	}

	if a.ID == b.ID {
		t.Errorf("Two creates should make two networks, both are %q", a.ID)
	}
}

func TestConnectionIsToldOnce(t *testing.T) {
	c, _ := start(t, t.TempDir())

	db, err := c.Create(t.Context(), api.Database, "", api.Spec{Engine: api.EngineOnce})
	if err != nil {
		t.Fatalf("c.Create(...): %v", err)
	}

	for n := range 2 {
		got, err := c.Get(t.Context(), api.Database, db.ID)
		if err != nil {
			t.Fatalf("c.Get(...): %v", err)
		}

		if told := got.Connection != nil; told != (n == 0) {
			t.Errorf("The connection should be read once. Read %d: %v", n, got.Connection)
		}
	}
}
