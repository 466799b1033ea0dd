package live

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// The API server tells its time with each answer, in whole seconds.
func TestServerTime(t *testing.T) {
	own := time.Date(2026, 1, 2, 3, 4, 5, 600e6, time.UTC)
	cases := map[string]struct {
		reason string
		ahead  time.Duration
		want   time.Duration
	}{
		"InStep":   {reason: "The server's fraction of a second is cut off."},
		"NearlySo": {reason: "A difference that small can't be measured.", ahead: time.Second},
		"Ahead":    {reason: "The server's clock is fast.", ahead: 5 * time.Minute, want: 5 * time.Minute},
		"Behind":   {reason: "The server's clock is slow.", ahead: -5 * time.Minute, want: -5 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := NewCluster(nil, nil)
			c.clock.set(own.Add(tc.ahead).Truncate(time.Second), own)
			if off := c.ServerTime(own).Sub(own) - tc.want; off.Abs() > time.Second {
				t.Errorf("%s It is off by %s", tc.reason, off)
			}
		})
	}
}

// The clock reads the Date of each answer, and keeps the last one when there is none.
func TestClockReadsAnswers(t *testing.T) {
	date := time.Now().Add(-5 * time.Minute).UTC().Format(http.TimeFormat)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = []string{date} }))
	defer s.Close()
	c := &clock{}
	for _, next := range []string{date, "", "yesterday"} {
		date = next
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.wrap(http.DefaultTransport).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
		if behind := time.Until(c.of(time.Now())); behind > -4*time.Minute || behind < -6*time.Minute {
			t.Errorf("after the Date %q the server's clock must be five minutes behind; got %s", next, behind)
		}
	}
}
