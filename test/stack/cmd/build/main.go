// Command build builds the programs of the real stack that are not in the cache: all of them, or the ones named.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if _, err := build.Ensure(ctx, os.Stderr, os.Args[1:]...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // The signal handler needs no cleanup when the process ends.
	}
}
