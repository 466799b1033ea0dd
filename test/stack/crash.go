package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Crash is Kill, but fails if the component does not run.
func (c *Components) Crash(name string) error {
	if _, err := c.PID(name); err != nil {
		return err
	}

	return c.Kill(name)
}

// PID returns the ID of a component's process. It fails if the component does not run.
func (c *Components) PID(name string) (pid int, err error) {
	err = c.with(name, func(m *component) error {
		if pid = m.pid(); pid == 0 {
			return fmt.Errorf("cannot look at the process of %s: it does not run", name)
		}

		return nil
	})

	return pid, err
}

// Revive starts the components that ended without being stopped, as a kubelet would, and returns
// their names.
func (c *Components) Revive(ctx context.Context) ([]string, error) {
	c.mu.Lock()
	var dead []string
	for _, m := range c.members {
		if m.died() != nil {
			dead = append(dead, m.name)
		}
	}
	c.mu.Unlock()
	for _, name := range dead {
		if err := c.Start(ctx, name); err != nil {
			return dead, err
		}
	}

	return dead, nil
}

// pid returns the ID of the process, or 0 if it does not run.
func (c *component) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil || !c.process.running() {
		return 0
	}

	return c.process.cmd.Process.Pid
}

// CrashPlugin kills only the plugin's processes that Velero has started. It waits for one: Velero
// starts one for each restore and for each poll.
func (c *Cluster) CrashPlugin(ctx context.Context) error {
	_, err := c.signalPlugin(ctx, syscall.SIGKILL)

	return err
}

// CrashPluginAtWork pauses the plugin's processes at once. The returned function kills them when
// Velero has called one, so that the call is under way.
func (c *Cluster) CrashPluginAtWork(ctx context.Context) (func() error, error) {
	called := []byte("Executing item action for") // Velero's restorer logs this before each call of an action.
	log, err := c.Log(Velero)
	if err != nil {
		return nil, err
	}
	pids, err := c.signalPlugin(ctx, syscall.SIGSTOP)
	if err != nil {
		return nil, err
	}
	before, err := os.ReadFile(log)
	if err != nil {
		return nil, fmt.Errorf("cannot read the log of %s: %w", Velero, err)
	}

	return func() error {
		err := Wait(ctx, readyTimeout, "a call of the plugin", func(context.Context) error {
			now, err := os.ReadFile(log)
			if err == nil && bytes.Count(now, called) == bytes.Count(before, called) {
				err = errors.New("Velero has not called an action")
			}

			return err
		})

		return errors.Join(err, signal(pids, syscall.SIGKILL))
	}, nil
}

// signalPlugin waits until the plugin has a process, and sends a signal to all its processes.
func (c *Cluster) signalPlugin(ctx context.Context, s syscall.Signal) ([]int, error) {
	var pids []int
	err := Wait(ctx, readyTimeout, "a process of the plugin", func(context.Context) (err error) {
		if pids, err = c.pluginProcesses(); err != nil {
			return err
		}
		if len(pids) == 0 {
			return errors.New("Velero has started none")
		}

		return signal(pids, s)
	})

	return pids, err
}

func signal(pids []int, s syscall.Signal) error {
	var errs []error
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil {
			errs = append(errs, fmt.Errorf("cannot send %s to process %d: %w", s, pid, err))
		}
	}

	return errors.Join(errs...)
}

// pluginProcesses finds Velero's children that run the plugin's program. A process that has ended
// and is not reaped yet runs none.
func (c *Cluster) pluginProcesses() ([]int, error) {
	parent, err := c.PID(Velero)
	if err != nil {
		return nil, fmt.Errorf("cannot look for processes of the plugin: %w", err)
	}
	program, err := c.program("plugin")
	if err != nil {
		return nil, err
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return nil, fmt.Errorf("cannot find the plugin's program: %w", err)
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	var pids []int
	for _, dir := range dirs {
		exe, err := os.Readlink(filepath.Join(dir, "exe"))
		if err != nil || exe != program || parentOf(dir) != parent {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, fmt.Errorf("cannot read a process ID: %w", err)
		}
		pids = append(pids, pid)
	}

	return pids, nil
}

// parentOf returns the parent's ID of a process, or 0 if there is no such process. The ID is two
// fields after the name, which may contain spaces and parentheses.
func parentOf(dir string) int {
	b, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	pid, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}

	return pid
}
