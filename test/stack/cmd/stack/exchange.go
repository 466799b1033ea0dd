package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// The owner of a stack exchanges the plugin when it gets exchangeSignal. The request has the path
// of the file, and the answer the error, or nothing.
const exchangeSignal = syscall.SIGUSR1

func requestFile(dir string) string { return filepath.Join(dir, "plugin.request") }
func answerFile(dir string) string  { return filepath.Join(dir, "plugin.answer") }

// exchange has the owner of a stack give Velero another build of the plugin, or the one of this
// repository for "", and restart Velero.
func exchange(ctx context.Context, dir, name, file string) error {
	pid, err := owner(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(summaryFile(dir)); pid == 0 || err != nil {
		return fmt.Errorf("cannot exchange the plugin: stack %s is not up", name)
	}
	if file == "" {
		set, err := build.Ensure(ctx, os.Stderr, "plugin")
		if err != nil {
			return err
		}
		file = set["plugin"].Path
	}
	if file, err = executable(file); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(answerFile(dir)), os.WriteFile(requestFile(dir), []byte(file), 0o600)); err != nil {
		return fmt.Errorf("cannot request another plugin: %w", err)
	}
	if err := syscall.Kill(pid, exchangeSignal); err != nil {
		return fmt.Errorf("cannot ask process %d, the owner of stack %s: %w", pid, name, err)
	}
	var answer []byte
	err = stack.Wait(ctx, 5*time.Minute, "Velero's start", func(context.Context) error {
		if pid, err := owner(dir); err == nil && pid == 0 {
			return stack.Never(errors.New("the stack has ended"))
		}
		answer, err = os.ReadFile(answerFile(dir))

		return err
	})
	if err == nil && len(answer) > 0 {
		err = errors.New(string(answer))
	}
	_ = os.Remove(answerFile(dir)) // The next exchange removes it, too.
	if err != nil {
		return fmt.Errorf("cannot exchange the plugin: %w", err)
	}
	fmt.Printf("Velero runs with %s\n", file)

	return nil
}

// executable returns the absolute path of a file, which Velero must be able to run.
func executable(file string) (string, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("cannot find %s: %w", file, err)
	}
	info, err := os.Stat(path)
	if err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
		err = errors.New("it is not an executable file")
	}
	if err != nil {
		return "", fmt.Errorf("cannot use %s as the plugin: %w", path, err)
	}

	return path, nil
}

// answer exchanges the plugin as requested, and writes the answer. use gives it to each Velero.
func answer(dir string, use func(path string) error) error {
	path, err := os.ReadFile(requestFile(dir))
	if err != nil {
		return fmt.Errorf("cannot read which plugin to use: %w", err)
	}
	said := ""
	if err := use(strings.TrimSpace(string(path))); err != nil {
		said = err.Error()
	}
	// Another process waits for the file, so it must appear whole.
	part := answerFile(dir) + ".part"

	return errors.Join(os.WriteFile(part, []byte(said), 0o600), os.Rename(part, answerFile(dir)), os.Remove(requestFile(dir)))
}
