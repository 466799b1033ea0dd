package stack

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// answers returns a probe that succeeds once a URL answers 200.
func answers(client *http.Client, url string) probe {
	return func(ctx context.Context, _ *process) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return Never(fmt.Errorf("cannot make a request for %s: %w", url, err))
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close() //nolint:errcheck // Only the status counts.
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, resp.Status)
		}

		return nil
	}
}

// accepts returns a probe that succeeds once a TCP connection is accepted and, with a TLS
// configuration, the handshake succeeds.
func accepts(address string, conf *tls.Config) probe {
	return func(ctx context.Context, _ *process) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		var conn net.Conn
		var err error
		if conf != nil {
			conf := conf.Clone()
			conf.NextProtos = []string{"h2"} // A gRPC server refuses others.
			conn, err = (&tls.Dialer{Config: conf}).DialContext(ctx, "tcp", address)
		} else {
			conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
		if err != nil {
			return err
		}

		return conn.Close()
	}
}

// logs returns a probe that succeeds once the process has written a text to its log that many
// times.
func logs(text string, times int) probe {
	return func(_ context.Context, p *process) error {
		b, err := os.ReadFile(p.log)
		if err != nil {
			return fmt.Errorf("cannot read the log: %w", err)
		}
		if n := bytes.Count(b[min(p.logged, int64(len(b))):], []byte(text)); n < times {
			return fmt.Errorf("its log says %q %d times, not %d times", text, n, times)
		}

		return nil
	}
}
