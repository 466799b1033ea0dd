package stack

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestWait(t *testing.T) {
	cases := map[string]struct {
		reason  string
		states  []error
		timeout time.Duration
		calls   int
		want    []string
	}{
		"InTheEnd": {
			reason:  "Wait must check a condition until it holds.",
			states:  []error{errors.New("1 of 3"), errors.New("2 of 3"), nil},
			timeout: time.Minute,
			calls:   3,
		},
		"Timeout": {
			reason:  "The error must name the condition and its last state.",
			states:  []error{errors.New("0 of 3"), errors.New("2 of 3")},
			timeout: 300 * time.Millisecond,
			want:    []string{"cannot get three things", "2 of 3"},
		},
		"Never": {
			reason:  "Wait must end at once when the condition can't hold any more.",
			states:  []error{Never(errors.New("it is broken"))},
			timeout: time.Minute,
			calls:   1,
			want:    []string{"cannot get three things: it is broken"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			calls := 0
			err := Wait(t.Context(), tc.timeout, "three things", func(context.Context) error {
				calls++

				return tc.states[min(calls, len(tc.states))-1]
			})
			if (err != nil) != (tc.want != nil) {
				t.Fatalf("%s\nerror: %v", tc.reason, err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s\n%q is not in: %v", tc.reason, want, err)
				}
			}
			if tc.calls > 0 && calls != tc.calls {
				t.Errorf("%s\n%d calls, not %d", tc.reason, calls, tc.calls)
			}
		})
	}
}
