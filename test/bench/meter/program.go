package meter

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A Run is the measurement of a program that ran to its end.
type Run struct {
	Seconds float64 `json:"seconds"`
	// Peak is its peak memory, in bytes.
	Peak int64 `json:"peak"`
}

// Time runs a program to its end and drops its output. The exit code may also be 3, with which the
// plugin reports findings.
func Time(ctx context.Context, program string, args ...string) (*Run, error) {
	w, err := Follow(program)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	var problems bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = &problems
	began := time.Now()
	err = cmd.Run()
	took := time.Since(began)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot run %s %s: %w\n%s", program, strings.Join(args, " "), err, problems.String())
	}

	return &Run{Seconds: took.Seconds(), Peak: Peak(w.Processes())}, nil
}

// Handshake starts the plugin as Velero does and returns how long it takes until it prints its
// address.
func Handshake(ctx context.Context, program string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "server")
	cmd.Env = append(os.Environ(), "VELERO_PLUGIN=hello") // The magic cookie of Velero's framework.
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, fmt.Errorf("cannot read the plugin's output: %w", err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("cannot start the plugin: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	took := time.Since(began)
	cancel()
	_ = cmd.Wait() // It was killed.
	if err != nil || !strings.Contains(line, "|grpc") {
		return 0, fmt.Errorf("cannot parse the plugin's address: %q: %w", line, errors.Join(err))
	}

	return took, nil
}

// Decode reads the tar file of a backup, decodes each object in it once, and returns their number.
func Decode(r io.Reader) (int, error) {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return 0, fmt.Errorf("cannot unzip the backup: %w", err)
	}
	n := 0
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, fmt.Errorf("cannot read the backup: %w", err)
		}
		// The other files repeat the same objects.
		if !strings.HasSuffix(header.Name, ".json") || strings.Contains(header.Name, "-preferredversion/") {
			continue
		}
		b, err := io.ReadAll(archive)
		if err != nil {
			return n, fmt.Errorf("cannot read %s: %w", header.Name, err)
		}
		var object map[string]any
		if err := json.Unmarshal(b, &object); err != nil {
			return n, fmt.Errorf("cannot decode %s: %w", header.Name, err)
		}
		n++
	}
}
