package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// down ends the owner of a stack and waits until its process has ended.
func down(ctx context.Context, dir, name string) error {
	pid, err := owner(dir)
	if err != nil {
		return err
	}
	if pid != 0 {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			return fmt.Errorf("cannot end process %d, the owner of stack %s: %w", pid, name, err)
		}
		err := stack.Wait(ctx, time.Minute, "the end of stack "+name, func(context.Context) error {
			pid, err := owner(dir)
			if err == nil && pid != 0 {
				err = fmt.Errorf("process %d owns it", pid)
			}

			return err
		})
		if err != nil {
			return err
		}
	}
	// A stack that was killed could not remove its files.
	if err := errors.Join(os.RemoveAll(runDir(dir)), os.RemoveAll(summaryFile(dir))); err != nil {
		return fmt.Errorf("cannot remove what stack %s left: %w", name, err)
	}

	return nil
}
