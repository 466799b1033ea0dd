//go:build !linux

package stack

import (
	"os/exec"
	"syscall"
)

// start starts a command as the leader of a process group. There is no parent death signal here;
// the keeper alone kills the group.
func start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

	return cmd.Start()
}
