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

// A Run is what was measured of a program that ran to its end.
type Run struct {
	Seconds float64 `json:"seconds"`
	// Peak is the most memory that it has had, in bytes.
	Peak int64 `json:"peak"`
}

// Time runs a program to its end. What it prints is thrown away. It may end with the exit code 3 as
// well, with which the plugin says that it has found something.
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

// Handshake starts the plugin as Velero does and returns how long it takes until it says where it
// listens.
func Handshake(ctx context.Context, program string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "server")
	cmd.Env = append(os.Environ(), "VELERO_PLUGIN=hello") // What Velero's framework calls the magic cookie.
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, fmt.Errorf("cannot read what the plugin says: %w", err)
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
		return 0, fmt.Errorf("cannot understand what the plugin says of where it listens: %q: %w", line, errors.Join(err))
	}

	return took, nil
}

// Decode reads the tar file of a backup and decodes each object in it once, and does nothing with
// them. It returns how many there were.
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
		// The other files are the same objects once more.
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
