package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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

// socketFile is where the owner of a stack listens. A request is a line: the path of a plugin, or
// end. The answer is the error, or nothing, when it is done.
func socketFile(dir string) string { return filepath.Join(dir, "socket") }

// end is the request to destroy the stack.
const end = "end"

var errRunning = errors.New("it is running")

// dial connects to the owner of a stack. It fails if there is none.
func dial(ctx context.Context, dir string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", socketFile(dir))
}

// own makes this process the owner of a stack, until it ends.
func own(ctx context.Context, dir string) (net.Listener, error) {
	if conn, err := dial(ctx, dir); err == nil {
		return nil, errors.Join(errRunning, conn.Close())
	}
	if err := os.RemoveAll(socketFile(dir)); err != nil { // An owner that was killed has left it.
		return nil, fmt.Errorf("cannot remove the socket of an earlier stack: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socketFile(dir))
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}

	return l, nil
}

// A request is the path of a plugin that Velero shall use, and where the answer goes.
type request struct {
	path   string
	answer net.Conn
}

// accept returns the requests for another plugin. It calls stop for a request to end.
func accept(l net.Listener, stop func()) <-chan request {
	requests := make(chan request)
	go func() {
		var open []net.Conn // What nothing refers to is closed.
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			line, err := bufio.NewReader(conn).ReadString('\n')
			switch line = strings.TrimSpace(line); {
			case err != nil:
				_ = conn.Close() // Who asks for nothing gets no answer.
			case line == end:
				open = append(open, conn) //nolint:staticcheck // The end of the process closes it.
				stop()
			default:
				requests <- request{line, conn}
			}
		}
	}()

	return requests
}

// do gives Velero the plugin with use, and answers.
func (r request) do(use func(path string) error) {
	if err := use(r.path); err != nil {
		_, _ = fmt.Fprint(r.answer, err)
	}
	_ = r.answer.Close() // A caller that has ended needs no answer.
}
