package stack

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func newComponents(t *testing.T) *Components {
	t.Helper()
	k, err := newReaper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.close(); err != nil {
			t.Error(err)
		}
	})

	return &Components{reaper: k}
}

func TestComponentThatEnds(t *testing.T) {
	cases := map[string]struct {
		reason string
		script string
		ready  probe
	}{
		"BeforeItIsReady": {
			reason: "A component that has ended must end the wait at once, and the error must have its log.",
			script: "echo the reason; exit 3",
			ready:  func(context.Context, *process) error { return errors.New("not ready") },
		},
		"WithSuccess": {
			reason: "A server that ends with exit code 0 has died too.",
			script: "echo the reason; exit 0",
			ready:  func(context.Context, *process) error { return errors.New("not ready") },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			components := newComponents(t)
			c := shell(t.TempDir(), tc.script)
			c.ready = tc.ready
			err := components.launch(t.Context(), c)
			if err == nil {
				t.Fatal(tc.reason)
			}
			for _, want := range []string{"sh ended unexpectedly: exit status", c.log, "the reason"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s\n%q is not in:\n%v", tc.reason, want, err)
				}
			}
			if err := components.Err(); err == nil {
				t.Error("a component that died must be noticed later too")
			}
		})
	}
}

func TestComponentThatIsStopped(t *testing.T) {
	cases := map[string]struct {
		reason string
		script string
		stop   func(*Components) error
	}{
		"Stop": {
			reason: "A component that ends on SIGTERM must not be killed.",
			script: "trap 'echo bye; exit 0' TERM; echo $$; while :; do sleep 0.05; done",
			stop:   func(c *Components) error { return c.Stop("sh") },
		},
		"StopIgnored": {
			reason: "A component that ignores SIGTERM must be killed after a while.",
			script: "trap '' TERM; echo $$; while :; do sleep 0.05; done",
			stop:   func(c *Components) error { return c.Stop("sh") },
		},
		"Kill": {
			reason: "The children of a killed component must end too.",
			script: "echo $$; sleep 300",
			stop:   func(c *Components) error { return c.Kill("sh") },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			components := newComponents(t)
			c := shell(t.TempDir(), tc.script)
			if err := components.launch(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			pid := readPIDs(t, c.log, 1)[0]
			if err := tc.stop(components); err != nil {
				t.Fatal(err)
			}
			if alive(pid) {
				t.Error(tc.reason)
			}
			if got := strings.Contains(tail(c.log), "bye"); got != (name == "Stop") {
				t.Errorf("%s\nthe log is:\n%s", tc.reason, tail(c.log))
			}
			if err := components.Err(); err != nil {
				t.Errorf("a stopped component must not count as dead: %v", err)
			}
			if err := components.Start(t.Context(), "sh"); err != nil {
				t.Errorf("a stopped component must start again: %v", err)
			}
			if err := components.killAll(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUnknownComponent(t *testing.T) {
	components := newComponents(t)
	components.members = []*component{{name: "etcd"}, {name: "velero"}}
	err := components.Stop("valero")
	if err == nil || !strings.Contains(err.Error(), "there are etcd, velero") {
		t.Errorf("the error must list the valid names, not: %v", err)
	}
}
