package hooks

import (
	"context"
	"errors"
	"strings"
)

// Exit codes. Scripts rely on them; docs/commands.md explains them.
const (
	ExitFine     = 0
	ExitFailed   = 1
	ExitUsage    = 2
	ExitProblems = 3
	ExitTimeout  = 4
)

// An exit ends the command with a code. A nil err means that the output already shows the reason.
type exit struct {
	code int
	err  error
	// list are lines that follow the error.
	list []string
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}

	return strings.Join(append([]string{e.err.Error()}, e.list...), "\n  ")
}

func (e *exit) Unwrap() error { return e.err }

// failed gives an error its exit code. The command has begun, so an error without a code is not a
// usage error.
func failed(err error) error {
	var e *exit
	switch {
	case err == nil || errors.As(err, &e):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &exit{code: ExitTimeout, err: err}
	default:
		return &exit{code: ExitFailed, err: err}
	}
}

// codeOf returns the exit code for the result of cobra's Execute. An error without a code comes
// from before the command began: a usage error.
func codeOf(err error) int {
	var e *exit
	switch {
	case err == nil:
		return ExitFine
	case errors.As(err, &e):
		return e.code
	default:
		return ExitUsage
	}
}

// exitFor returns the exit of a command that has printed its problems.
func exitFor(problems int) error {
	if problems == 0 {
		return nil
	}

	return &exit{code: ExitProblems}
}
