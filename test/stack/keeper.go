package stack

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// The parent death signal reaches only a process' own children, and Velero's plugins are its
// grandchildren. So a shell that nobody signals holds the list of process groups, and kills them
// when its input ends, which the kernel sees to when the parent dies.
const keeperScript = `
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

// A keeper kills the process groups that it was told of once this process is gone, then removes
// directories.
type keeper struct {
	mu   sync.Mutex
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

func newKeeper(remove ...string) (*keeper, error) {
	cmd := exec.Command("/bin/sh", append([]string{"-c", keeperScript, "keeper"}, remove...)...) //nolint:noctx // It outlives this process.
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make the keeper's pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the keeper: %w", err)
	}

	return &keeper{cmd: cmd, pipe: pipe}, nil
}

func (k *keeper) add(group int) error { return k.tell('+', group) }

func (k *keeper) drop(group int) error { return k.tell('-', group) }

func (k *keeper) tell(sign rune, group int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := fmt.Fprintf(k.pipe, "%c%d\n", sign, group); err != nil {
		return fmt.Errorf("cannot tell the keeper of process group %d: %w", group, err)
	}

	return nil
}

// close lets the keeper do its work now.
func (k *keeper) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.pipe.Close(); err != nil {
		return fmt.Errorf("cannot close the keeper's pipe: %w", err)
	}
	if err := k.cmd.Wait(); err != nil {
		return fmt.Errorf("cannot wait for the keeper: %w", err)
	}

	return nil
}
