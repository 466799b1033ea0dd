package stack

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// The parent death signal reaches only a process' own children, and Velero's plugins are its
// grandchildren. So a shell that ignores signals holds the list of process groups. It kills them
// when its input ends, because the kernel closes the pipe when the parent dies.
const reaperScript = `
trap '' HUP INT TERM
groups=
while read -r line; do
	group=${line#?}
	case $line in
	+*) groups="$groups $group" ;;
	-*)
		left=
		for g in $groups; do [ "$g" = "$group" ] || left="$left $g"; done
		groups=$left
		;;
	esac
done
for g in $groups; do kill -KILL "-$g" 2>/dev/null; done
[ $# -eq 0 ] || rm -rf -- "$@"
`

// A reaper kills the added process groups once this process has ended, then removes directories.
type reaper struct {
	mu   sync.Mutex
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

func newReaper(remove ...string) (*reaper, error) {
	cmd := exec.Command("/bin/sh", append([]string{"-c", reaperScript, "reaper"}, remove...)...) //nolint:noctx // It outlives this process.
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make the reaper's pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the reaper: %w", err)
	}

	return &reaper{cmd: cmd, pipe: pipe}, nil
}

func (k *reaper) add(group int) error { return k.send('+', group) }

func (k *reaper) drop(group int) error { return k.send('-', group) }

func (k *reaper) send(sign rune, group int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := fmt.Fprintf(k.pipe, "%c%d\n", sign, group); err != nil {
		return fmt.Errorf("cannot send the reaper process group %d: %w", group, err)
	}

	return nil
}

// close makes the reaper do its work now.
func (k *reaper) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.pipe.Close(); err != nil {
		return fmt.Errorf("cannot close the reaper's pipe: %w", err)
	}
	if err := k.cmd.Wait(); err != nil {
		return fmt.Errorf("cannot wait for the reaper: %w", err)
	}

	return nil
}
