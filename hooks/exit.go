package hooks

import (
	"context"
	"errors"
	"strings"
)

// Exit codes. Scripts rely on them; docs/commands.md says what they mean.
const (
	ExitFine     = 0
	ExitFailed   = 1
	ExitUsage    = 2
	ExitProblems = 3
	ExitTimeout  = 4
)

// An exit ends the command with a code. One without an error has been told already.
type exit struct {
	code int
	err  error
	// list are lines of their own below the error.
	list []string
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}

	return strings.Join(append([]string{e.err.Error()}, e.list...), "\n  ")
}

func (e *exit) Unwrap() error { return e.err }

// failed gives an error of a command that has begun its exit code: what has none is not the user's
// fault.
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

// codeOf returns the exit code for what Execute of a cobra.Command returned: before a command
// begins, only its usage can be wrong.
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

// exitFor is the exit of a command that has told what it found.
func exitFor(problems int) error {
	if problems == 0 {
		return nil
	}

	return &exit{code: ExitProblems}
}
