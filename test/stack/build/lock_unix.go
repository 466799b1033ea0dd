//go:build unix

package build

import (
	"fmt"
	"os"
	"syscall"
)

// lock keeps two builds from writing one cache at a time. The lock goes with the process.
func lock(path string) (func(), error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot open the cache's lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()

		return nil, fmt.Errorf("cannot lock the cache at %s: %w", path, err)
	}

	return func() { _ = f.Close() }, nil
}
