package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// down ends the owner of a stack and waits until its process has ended.
func down(ctx context.Context, dir, name string) error {
	if conn, err := dial(ctx, dir); err == nil {
		_, err := fmt.Fprintln(conn, end)
		err = errors.Join(err, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		if err == nil {
			_, err = io.ReadAll(conn)
		}
		if err := errors.Join(err, conn.Close()); err != nil {
			return fmt.Errorf("cannot end the owner of stack %s: %w", name, err)
		}
	}
	// A stack that was killed could not remove its files.
	if err := errors.Join(os.RemoveAll(runDir(dir)), os.RemoveAll(summaryFile(dir))); err != nil {
		return fmt.Errorf("cannot remove what stack %s left: %w", name, err)
	}

	return nil
}
