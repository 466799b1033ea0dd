package xptest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A Row is a case of a table: what goes in, and what must come out for the reason.
type Row[I, W any] struct {
	Reason string
	In     I
	Want   W
}

// Run compares what do makes of each row with what the row wants.
func Run[I, W any](t *testing.T, rows map[string]Row[I, W], do func(in I) W, o ...cmp.Option) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Helper()
			if diff := cmp.Diff(row.Want, do(row.In), o...); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", row.Reason, diff)
			}
		})
	}
}

// Value returns the value. An error means that the test is wrong.
func Value[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}

	return v
}
