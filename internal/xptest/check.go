package xptest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Bubble runs a test with a clock that goes on when all of the test waits. It begins at noon of
// 2 January 2026, UTC.
func Bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, time.January, 2, 12, 0, 0, 0, time.UTC)))
		test(t)
	})
}

// Each runs a test in a bubble for each case.
func Each[C any](t *testing.T, cases map[string]C, test func(t *testing.T, tc C)) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { Bubble(t, func(t *testing.T) { test(t, tc) }) })
	}
}

// Must ends the test if there is an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Same fails unless what is there is what is wanted, and says why that is wanted.
func Same(t *testing.T, want, got any, reason string, o ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, o...); diff != "" {
		t.Errorf("%s\n-want, +got:\n%s", reason, diff)
	}
}
