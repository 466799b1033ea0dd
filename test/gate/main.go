// The gate command is a composition function whose desired resources depend on the state of
// observed ones. See gate.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/crossplane/function-sdk-go/proto/v1beta1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

func main() {
	address := flag.String("address", "127.0.0.1:9443", "Address to listen on.")
	certs := flag.String("tls-certs-dir", "", "Directory with tls.crt and tls.key, and the ca.crt of clients.")

	flag.Parse()

	if err := serve(*address, *certs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(address, certs string) error {
	config, err := configFrom(certs)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address) //nolint:noctx // It listens until the process ends.
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	v1beta1.RegisterFunctionRunnerServiceServer(s, &gate{})
	if err := s.Serve(l); err != nil {
		return fmt.Errorf("cannot serve on %s: %w", address, err)
	}

	return nil
}

// configFrom reads the certificates of a directory. Client and server authenticate each other.
func configFrom(dir string) (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate of this function: %w", err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate of clients' authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("cannot read the certificate of clients' authority: it is none")
	}

	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}, nil
}
