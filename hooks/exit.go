package hooks

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
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

// withRights adds to an error about a missing right which file has the rights for the command.
func withRights(command string, err error) error {
	if err == nil || messageOf(err).Code != reason.RightMissing {
		return err
	}
	err = reason.RightMissing.Errorf("%w; example/rbac/%s.yaml has the rights for %[2]s", err, command)
	if command == "hold" {
		err = fmt.Errorf("%w, once a backup has made the key that signs the holds", err)
	}

	return err
}

// messageOf returns the message of an error. An error of the API server without a code gets the one
// for missing rights, or for a timeout.
func messageOf(err error) reason.Message {
	m := reason.ErrorMessage(err)
	switch {
	case m.Code != "":
	case apierrors.IsForbidden(err):
		m.Code = reason.RightMissing
	case errors.Is(err, context.DeadlineExceeded):
		m.Code = reason.TimedOut
	case errors.Is(err, context.Canceled):
		m.Code = reason.Interrupted
	}

	return m
}
