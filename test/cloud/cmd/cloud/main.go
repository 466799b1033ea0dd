// The cloud command serves a small cloud over HTTP, and stores it in a directory, until it is
// killed. See package server.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/server"
)

func main() {
	address := flag.String("address", "127.0.0.1:9090", "Address to listen on.")
	dir := flag.String("dir", "", "Directory to keep the cloud in. It is made if need be.")
	delay := flag.Duration("database-delay", 3*time.Second, "How long a database takes to become available.")

	flag.Parse()
	fmt.Fprintln(os.Stderr, serve(*address, *dir, *delay))
	os.Exit(1)
}

func serve(address, dir string, delay time.Duration) error {
	if dir == "" {
		return errors.New("cannot start the cloud: it needs a directory; set --dir")
	}

	s, err := server.New(dir, delay)
	if err != nil {
		return fmt.Errorf("cannot start the cloud: %w", err)
	}

	h := &http.Server{Addr: address, Handler: s, ReadHeaderTimeout: 10 * time.Second}

	return fmt.Errorf("cannot serve the cloud: %w", h.ListenAndServe())
}
