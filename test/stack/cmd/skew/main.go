// The skew command runs a program with a clock that is ahead, or behind: skew OFFSET PROGRAM NAME
// [ARGUMENT]... The program sees NAME as its own. The offset is in whole seconds, and the program's
// children have the machine's clock again.
//
// Programs built with Go read the time without a system call, from code that the kernel maps into
// each process (vdso(7)), and without libc, so libfaketime has no effect on them. This command
// replaces that code before the program's first instruction.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot run a program with another clock:", err)
		code = 125
	}
	os.Exit(code)
}

func run(args []string) (int, error) {
	if len(args) < 3 {
		return 0, errors.New("give an offset, a program, and its name")
	}
	offset, err := time.ParseDuration(args[0])
	if err != nil {
		return 0, fmt.Errorf("cannot read the offset: %w", err)
	}
	cmd := exec.Command(args[1], args[3:]...) //nolint:noctx // It lives as long as this process.
	cmd.Args[0] = args[2]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := start(cmd, offset); err != nil {
		return 0, err
	}
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}

	return 0, err
}
