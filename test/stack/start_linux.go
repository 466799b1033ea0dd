package stack

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// The kernel sends the parent death signal when the thread that started the child ends, not when
// the process does. So one thread, which lives as long as the process, starts all children.
var starter = sync.OnceValue(func() chan<- func() { //nolint:gochecknoglobals // One per process is the point.
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()

	return jobs
})

// start starts a command as the leader of a process group. The kernel kills it when this process
// dies.
func start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }

	return <-started
}
