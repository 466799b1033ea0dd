package stack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asParent is an environment variable with a directory. If it is set, this test binary starts a
// component and waits to be killed.
const asParent = "STACK_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asParent); dir != "" {
		if err := playParent(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func playParent(dir string) error {
	k, err := newReaper(filepath.Join(dir, "gone"))
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "gone"), 0o755); err != nil {
		return err
	}
	if err := shell(dir, "sleep 300 & echo $! && echo $$ && wait").start(k); err != nil {
		return err
	}
	select {}
}

func shell(dir, script string) *component {
	return &component{
		name: "sh", path: "/bin/sh", args: []string{"-c", script}, env: environment(dir, dir), dir: dir, log: logFile(dir, "sh"),
		ready: func(context.Context, *process) error { return nil },
	}
}

// A killed parent can do nothing more, and its grandchildren get no signal from the kernel.
func TestNothingOutlivesAKilledParent(t *testing.T) {
	dir := t.TempDir()
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), asParent+"="+dir)
	parent.Stderr = os.Stderr
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pids := readPIDs(t, logFile(dir, "sh"), 2)
	for _, pid := range pids {
		if !alive(pid) {
			t.Fatalf("process %d must run while its parent does", pid)
		}
	}

	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()

	err := Wait(t.Context(), 20*time.Second, "the end of every process", func(context.Context) error {
		for _, pid := range pids {
			if alive(pid) {
				return fmt.Errorf("process %d still runs", pid)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "gone")); err == nil {
			return errors.New("the directory to remove is there")
		}

		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func readPIDs(t *testing.T, file string, n int) []int {
	t.Helper()
	var pids []int
	err := Wait(t.Context(), 20*time.Second, "process IDs", func(context.Context) error {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		pids = nil
		for lines := bufio.NewScanner(f); lines.Scan(); {
			pid, err := strconv.Atoi(lines.Text())
			if err != nil {
				return err
			}
			pids = append(pids, pid)
		}
		if len(pids) != n {
			return fmt.Errorf("the log has %d processes", len(pids))
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return pids
}

// alive reports whether a process runs. A dead process that its new parent has not waited for still
// has an ID.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")

	return !strings.HasPrefix(state, "Z")
}
