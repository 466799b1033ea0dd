package stack

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWait(t *testing.T) {
	cases := map[string]struct {
		reason string
		states []error
		calls  int
		want   string
	}{
		"InTheEnd": {reason: "Wait must check a condition until it holds.", states: []error{errors.New("1"), errors.New("2"), nil}, calls: 3},
		"Timeout":  {reason: "The error must have the last state.", states: []error{errors.New("0 of 3"), errors.New("2 of 3")}, want: "cannot get three things in 1m0s: 2 of 3"},
		"Never":    {reason: "Wait must end at once when the condition can't hold any more.", states: []error{Never(errors.New("broken"))}, calls: 1, want: "cannot get three things: broken"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, got := 0, ""
				err := Wait(t.Context(), time.Minute, "three things", func(context.Context) error {
					calls++

					return tc.states[min(calls, len(tc.states))-1]
				})
				if err != nil {
					got = err.Error()
				}
				if !strings.HasPrefix(got, tc.want) || (err == nil) != (tc.want == "") || tc.calls > 0 && calls != tc.calls {
					t.Errorf("%s got %v after %d calls", tc.reason, err, calls)
				}
			})
		})
	}
}
