//go:build !linux

package stack

import (
	"os/exec"
	"syscall"
)

// start starts a command as the leader of a process group. This system has no parent death signal;
// only the reaper kills the group.
func start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

	return cmd.Start()
}
