package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// stopTimeout is how long a process may take to end after SIGTERM.
const stopTimeout = 5 * time.Second

// A component is a long-running process that can be stopped and started again.
type component struct {
	name  string
	path  string
	args  []string
	env   []string
	dir   string
	log   string
	ready probe

	mu      sync.Mutex
	process *process // nil if it was never started, or was stopped on purpose.
}

// A probe returns nil once a process serves.
type probe = func(context.Context, *process) error

type process struct {
	cmd   *exec.Cmd
	began time.Time
	log   string
	// logged is the offset in the log file at which this process begins.
	logged int64
	done   chan struct{}
	err    error // Set before done is closed.
}

// start starts the process without waiting until it is ready. It does nothing if the process runs.
func (c *component) start(k *reaper) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process != nil && c.process.running() {
		return nil
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the directory of %s: %w", c.name, err)
	}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("cannot open the log of %s: %w", c.name, err)
	}
	defer log.Close() //nolint:errcheck // The process has its own descriptor.
	info, err := log.Stat()
	if err != nil {
		return fmt.Errorf("cannot look at the log of %s: %w", c.name, err)
	}

	cmd := exec.Command(c.path, c.args...) //nolint:noctx // It outlives the context of its start.
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env, log, log
	p := &process{cmd: cmd, began: time.Now(), log: c.log, logged: info.Size(), done: make(chan struct{})}
	if err := start(cmd); err != nil {
		return fmt.Errorf("cannot start %s: %w", c.name, err)
	}
	if err := k.add(cmd.Process.Pid); err != nil {
		return errors.Join(err, p.kill(), cmd.Wait())
	}
	go func() {
		p.err = cmd.Wait()
		_ = p.kill() // Its children may be left. Without any, the group does not exist any more.
		_ = k.drop(cmd.Process.Pid)
		close(p.done)
	}()
	c.process = p

	return nil
}

// await waits until the running process is ready. It ends at once if the process does.
func (c *component) await(ctx context.Context) error {
	c.mu.Lock()
	p := c.process
	c.mu.Unlock()
	if p == nil {
		return fmt.Errorf("cannot wait for %s: it was not started", c.name)
	}
	err := Wait(ctx, readyTimeout, c.name+" ready", func(ctx context.Context) error {
		if err := c.died(); err != nil {
			return Never(err)
		}

		return c.ready(ctx, p)
	})
	if err != nil && c.died() == nil {
		return c.explain(err)
	}

	return err
}

// died returns an error if the process ended without being stopped.
func (c *component) died() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil || c.process.running() {
		return nil
	}
	state := "exit status 0"
	if c.process.err != nil {
		state = c.process.err.Error()
	}

	return c.explain(fmt.Errorf("%s ended unexpectedly: %s", c.name, state))
}

// explain adds the end of the component's log to an error.
func (c *component) explain(err error) error {
	return fmt.Errorf("%w\nlast lines of %s:\n%s", err, c.log, tail(c.log))
}

// tail returns the last lines of a file, indented.
func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("  (cannot read the log: %v)", err)
	}

	return "  " + strings.ReplaceAll(build.Tail(string(b)), "\n", "\n  ")
}

// stop sends SIGTERM to the process, and kills its group if it does not end within stopTimeout. It
// returns once the process has ended.
func (c *component) stop() error {
	return c.end(func(p *process) error {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		late := time.NewTimer(stopTimeout)
		defer late.Stop()
		select {
		case <-p.done:
			return nil
		case <-late.C:
			return p.kill()
		}
	})
}

// kill kills the process and its children. It returns once the process has ended.
func (c *component) kill() error { return c.end((*process).kill) }

func (c *component) end(how func(*process) error) error {
	c.mu.Lock()
	p := c.process
	c.process = nil
	c.mu.Unlock()
	if p == nil || !p.running() {
		return nil
	}
	if err := how(p); err != nil {
		return fmt.Errorf("cannot stop %s: %w", c.name, err)
	}
	<-p.done

	return nil
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill kills the whole process group, which the process leads.
func (p *process) kill() error {
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cannot kill process group %d: %w", p.cmd.Process.Pid, err)
	}

	return nil
}

// environment returns the environment of every process. From the user's it has only the search
// path, so that no proxy, credential or kubeconfig of theirs is used.
func environment(home, tmp string, extra ...string) []string {
	fixed := []string{
		"HOME=" + home, "TMPDIR=" + tmp, "PATH=" + os.Getenv("PATH"), "AWS_EC2_METADATA_DISABLED=true", "NO_COLOR=1", "GORACE=halt_on_error=1",
	}

	return append(fixed, extra...)
}

func logFile(dir, name string) string { return filepath.Join(dir, name+".log") }
