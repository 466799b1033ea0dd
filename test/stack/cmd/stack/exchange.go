package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// exchange has the owner of a stack give Velero another build of the plugin, or the one of this
// repository for "", and restart Velero.
func exchange(ctx context.Context, dir, name, file string) error {
	conn, err := dial(ctx, dir)
	if err != nil {
		return fmt.Errorf("cannot exchange the plugin: stack %s is not up: %w", name, err)
	}
	defer conn.Close() //nolint:errcheck // The answer was read.
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
	_, err = fmt.Fprintln(conn, file)
	if err == nil {
		var answer []byte
		if answer, err = io.ReadAll(conn); len(answer) > 0 {
			err = errors.New(string(answer))
		}
	}
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
