package stack

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// launched starts a shell that prints its process ID, and returns that.
func launched(t *testing.T, c *component) (*Components, int) {
	t.Helper()
	k, err := newReaper()
	if err != nil {
		t.Fatal(err)
	}
	components := &Components{reaper: k}
	t.Cleanup(func() {
		if err := errors.Join(components.killAll(), k.close()); err != nil {
			t.Error(err)
		}
	})
	if err := components.launch(t.Context(), c); err != nil {
		t.Fatal(err)
	}

	return components, readPIDs(t, c.log, 1)[0]
}

// A component that has ended, also with success, ends the wait at once, and the error has its log.
func TestComponentThatEnds(t *testing.T) {
	k, err := newReaper()
	if err != nil {
		t.Fatal(err)
	}
	defer k.close() //nolint:errcheck // Nothing is left.
	components, c := &Components{reaper: k}, shell(t.TempDir(), "echo the reason; exit 0")
	c.ready = func(context.Context, *process) error { return errors.New("not ready") }
	for _, err := range []error{components.launch(t.Context(), c), components.Err()} {
		if err == nil || !strings.Contains(err.Error(), "ended unexpectedly: exit status 0") || !strings.Contains(err.Error(), "the reason") {
			t.Errorf("got %v", err)
		}
	}
}

func TestComponentThatIsStopped(t *testing.T) {
	cases := map[string]struct {
		reason, script string
		stop           func(*Components) error
		bye            bool
	}{
		"Stop": {
			reason: "A component that ends on SIGTERM must not be killed.", script: "trap 'echo bye; exit 0' TERM; echo $$; while :; do sleep 0.05; done",
			stop: func(c *Components) error { return c.Stop("sh") }, bye: true,
		},
		"StopIgnored": {
			reason: "A component that ignores SIGTERM must be killed after a while.", script: "trap '' TERM; echo $$; while :; do sleep 0.05; done",
			stop: func(c *Components) error { return c.Stop("sh") },
		},
		"Crash": {
			reason: "The children of a killed component must end too.", script: "echo $$; sleep 300",
			stop: func(c *Components) error { return c.Crash("sh") },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := shell(t.TempDir(), tc.script)
			components, pid := launched(t, c)
			if err := tc.stop(components); err != nil {
				t.Fatal(err)
			}
			if alive(pid) || strings.Contains(tail(c.log), "bye") != tc.bye {
				t.Errorf("%s\nit runs: %t; the log is:\n%s", tc.reason, alive(pid), tail(c.log))
			}
			if err := components.Err(); err != nil {
				t.Errorf("a stopped component must not count as dead: %v", err)
			}
			if err := components.Crash("sh"); err == nil {
				t.Error("Crash must fail without a process")
			}
			if err := components.Start(t.Context(), "sh"); err != nil {
				t.Errorf("a stopped component must start again: %v", err)
			}
		})
	}
}

func TestRevive(t *testing.T) {
	components, pid := launched(t, shell(t.TempDir(), "echo $$; sleep 300"))
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := Wait(t.Context(), readyTimeout, "the death of sh", func(context.Context) error {
		if components.Err() == nil {
			return errors.New("it lives")
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	dead, err := components.Revive(t.Context())
	if diff := cmp.Diff([]string{"sh"}, dead); diff != "" || err != nil || components.Err() != nil {
		t.Errorf("Revive must start a component that died: -want, +got:\n%s%v, %v", diff, err, components.Err())
	}
}
