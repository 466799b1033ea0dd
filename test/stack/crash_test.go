package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParentOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		dir    string
		want   int
	}{
		"Living": {reason: "The parent must match the process's own view.", dir: fmt.Sprintf("/proc/%d", os.Getpid()), want: os.Getppid()},
		"Gone":   {reason: "A process that has ended has no parent.", dir: "/proc/0", want: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, parentOf(tc.dir)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCrash(t *testing.T) {
	components := newComponents(t)
	c := shell(t.TempDir(), "echo $$; sleep 300")
	if err := components.launch(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	pid := readPIDs(t, c.log, 1)[0]
	if got, err := components.PID("sh"); err != nil || got != pid {
		t.Errorf("the process is %d, not %d: %v", pid, got, err)
	}
	if err := components.Crash("sh"); err != nil || alive(pid) {
		t.Errorf("a crashed process must end: %v", err)
	}
	if err := components.Crash("sh"); err == nil {
		t.Error("Crash must fail without a process")
	}
	if _, err := components.PID("sh"); err == nil {
		t.Error("PID must fail without a process")
	}
	if dead, err := components.Revive(t.Context()); err != nil || len(dead) > 0 {
		t.Errorf("Revive must not start a component that the test crashed: %v, %v", dead, err)
	}
}

func TestRevive(t *testing.T) {
	components := newComponents(t)
	c := shell(t.TempDir(), "echo $$; sleep 300")
	if err := components.launch(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	pid := readPIDs(t, c.log, 1)[0]
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
	if diff := cmp.Diff([]string{"sh"}, dead); diff != "" || err != nil {
		t.Errorf("Revive must start a component that died: -want, +got:\n%s%v", diff, err)
	}
	if err := components.Err(); err != nil {
		t.Errorf("a revived component must count as alive: %v", err)
	}
	if err := components.killAll(); err != nil {
		t.Error(err)
	}
}
