package cluster

import (
	"net/http"
	"sync/atomic"
	"time"
)

// maxInStep is up to how far apart clocks count as equal: the API server tells its time in whole
// seconds, and the answer takes a while.
const maxInStep = 2 * time.Second

// A clock knows by how much the API server's clock is ahead of this machine's. The server writes
// its own time into objects (creationTimestamp, deletionTimestamp, managedFields), so every time
// that is compared with these, here or by a later process on another machine, must be its time.
type clock struct {
	ahead atomic.Int64
}

// of returns what the API server's clock showed when this machine's showed own.
func (c *clock) of(own time.Time) time.Time { return own.Add(time.Duration(c.ahead.Load())) }

// wrap makes the clock read the Date of each answer. The server writes it when the answer begins
// (net/http, Server).
func (c *clock) wrap(next http.RoundTripper) http.RoundTripper { return &dated{next: next, clock: c} }

// set sets how far the server's clock is ahead.
func (c *clock) set(server, own time.Time) {
	ahead := server.Sub(own)
	if ahead.Abs() <= maxInStep {
		ahead = 0
	}
	c.ahead.Store(int64(ahead))
}

// dated is a RoundTripper with a clock.
type dated struct {
	next  http.RoundTripper
	clock *clock
}

// RoundTrip makes a request.
func (d *dated) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := d.next.RoundTrip(r)
	if err != nil {
		return answer, err //nolint:wrapcheck // The client describes it.
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		d.clock.set(date, time.Now())
	}

	return answer, nil
}

// WrappedRoundTripper lets client-go cancel requests (apimachinery pkg/util/net,
// RoundTripperWrapper).
func (d *dated) WrappedRoundTripper() http.RoundTripper { return d.next }

// ServerTime returns what the API server's clock showed when this machine's showed own.
func (c *Cluster) ServerTime(own time.Time) time.Time { return c.clock.of(own) }

// ServerNow returns the API server's time.
func (c *Cluster) ServerNow() time.Time { return c.clock.of(time.Now()) }
