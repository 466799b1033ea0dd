package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

var nameRE = regexp.MustCompile(`^[a-z0-9][-a-z0-9]*$`)

// stateDir returns the directory of the stack with that name.
func stateDir(name string) (string, error) {
	if !nameRE.MatchString(name) {
		return "", fmt.Errorf("cannot name a stack %q: use lower-case letters, digits and dashes", name)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cannot find the user's cache directory: %w", err)
	}
	dir := filepath.Join(cache, "velero-plugin-for-crossplane", "run", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the directory of stack %s: %w", name, err)
	}

	return dir, nil
}

func runDir(dir string) string      { return filepath.Join(dir, "host") }
func outputFile(dir string) string  { return filepath.Join(dir, "up.log") }
func summaryFile(dir string) string { return filepath.Join(dir, "summary") }
func lockFile(dir string) string    { return filepath.Join(dir, "lock") }

var errRunning = errors.New("it is running")

// own makes this process the owner of a stack: it holds the lock until it ends, and the lock's file
// has its process ID. The ID counts only while the lock is held, so it can't be that of a later
// process.
func own(dir string) (release func(), err error) {
	f, err := lock(dir)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(0), write(f, strconv.Itoa(os.Getpid()))); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot write the owner of the stack: %w", err), f.Close())
	}

	return func() { _ = f.Close() }, nil
}

// owner returns the process ID of the owner of a stack, or 0 if it has none.
func owner(dir string) (int, error) {
	f, err := lock(dir)
	if err == nil {
		return 0, f.Close()
	}
	if !errors.Is(err, errRunning) {
		return 0, err
	}
	b, err := os.ReadFile(lockFile(dir))
	if err != nil {
		return 0, fmt.Errorf("cannot read the owner of the stack: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, fmt.Errorf("cannot read the owner of the stack in %s: %w", lockFile(dir), err)
	}

	return pid, nil
}

func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(lockFile(dir), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock of the stack: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errRunning
		}

		return nil, errors.Join(fmt.Errorf("cannot lock the stack: %w", err), f.Close())
	}

	return f, nil
}

func write(f *os.File, s string) error {
	_, err := f.WriteString(s)

	return err
}
