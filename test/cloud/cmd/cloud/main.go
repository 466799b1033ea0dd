// The cloud command serves a small cloud over HTTP, and stores it in a directory. See package
// server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/server"
)

const (
	shutdownTimeout   = 5 * time.Second
	readHeaderTimeout = 10 * time.Second
)

func main() {
	address := flag.String("address", "127.0.0.1:9090", "Address to listen on.")
	dir := flag.String("dir", "", "Directory to keep the cloud in. It is made if need be.")
	delay := flag.Duration("database-delay", 3*time.Second, "How long a database takes to become available.")

	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	if err := run(ctx, *address, *dir, *delay); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // There is nothing left to stop.
	}
}

// run the cloud until the context is done.
func run(ctx context.Context, address, dir string, delay time.Duration) (err error) {
	if dir == "" {
		return errors.New("cannot start the cloud: it needs a directory; set --dir")
	}

	s, err := server.New(dir, server.WithDatabaseDelay(delay))
	if err != nil {
		return fmt.Errorf("cannot start the cloud: %w", err)
	}

	defer func() { err = errors.Join(err, s.Close()) }()

	h := &http.Server{Addr: address, Handler: s, ReadHeaderTimeout: readHeaderTimeout}
	failed := make(chan error, 1)

	go func() { failed <- h.ListenAndServe() }()

	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve the cloud: %w", err)
	case <-ctx.Done():
	}

	timeout, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()

	if err := h.Shutdown(timeout); err != nil {
		return fmt.Errorf("cannot stop the cloud: %w", err)
	}

	return nil
}
