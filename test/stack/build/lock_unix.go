//go:build unix

package build

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock keeps two builds from writing one cache at the same time. It calls waits if another process
// has the lock. The kernel releases the lock when the process ends.
func lock(path string, waits func()) (func(), error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot open the cache's lock: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		waits()
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		_ = f.Close()

		return nil, fmt.Errorf("cannot lock the cache at %s: %w", path, err)
	}

	return func() { _ = f.Close() }, nil
}
