package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// Names of a Host's components.
const (
	S3    = "gofakes3"
	Cloud = "cloud"
)

const bucket = "velero"

// A Host outlives its clusters: it has the S3 server with the backups and the cloud with the
// external resources.
type Host struct {
	Components

	set      build.Set
	dir      string
	tmp      string
	ownsDir  bool // Close removes the directory.
	out      *progress
	s3URL    string
	cloudURL string

	mu       sync.Mutex
	clusters []*Cluster
}

// NewHost starts a Host, and writes the progress of it and its clusters to out. All files are under
// dir and stay there. If dir is "", they are in a temporary directory that Close removes. The
// context is for the start only.
func NewHost(ctx context.Context, set build.Set, dir string, out io.Writer) (*Host, error) {
	// Plugins listen on sockets in the directory for temporary files, and a socket's path has at
	// most about 100 characters.
	tmp, err := os.MkdirTemp("", "stack-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a temporary directory: %w", err)
	}
	h := &Host{set: set, dir: dir, tmp: tmp, ownsDir: dir == "", out: newProgress(out)}
	if h.ownsDir {
		h.dir = filepath.Join(tmp, "host")
	} else if h.dir, err = filepath.Abs(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot find the Host's directory: %w", err), os.RemoveAll(tmp))
	}
	if h.reaper, err = newReaper(tmp); err != nil {
		return nil, errors.Join(err, os.RemoveAll(tmp))
	}
	if err := h.start(ctx); err != nil {
		return nil, errors.Join(err, h.Close())
	}

	return h, nil
}

func (h *Host) start(ctx context.Context) error {
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	// If the bucket has no folder for backups, the S3 server answers that there is no such bucket
	// when Velero lists them.
	if err := os.MkdirAll(filepath.Join(h.dir, S3, "buckets", bucket, "backups"), 0o755); err != nil {
		return fmt.Errorf("cannot make the bucket: %w", err)
	}
	s3, cloud := loopback(ports[0]), loopback(ports[1])
	h.s3URL, h.cloudURL = "http://"+s3, "http://"+cloud

	return parallel(
		func() error {
			return h.run(ctx, S3, answers(http.DefaultClient, h.s3URL),
				"-host", s3, "-backend", "fs", "-fs.path", filepath.Join(h.dir, S3), "-fs.create", "-initialbucket", bucket, "-quiet")
		},
		func() error {
			return h.run(ctx, Cloud, accepts(cloud, nil), "--address", cloud, "--dir", filepath.Join(h.dir, Cloud), "--database-delay", "3s")
		},
	)
}

func (h *Host) run(ctx context.Context, name string, ready probe, args ...string) error {
	program, err := program(h.set, name)
	if err != nil {
		return err
	}
	began := time.Now()
	err = h.launch(ctx, &component{
		name: name, path: program.Path, args: args, env: environment(h.dir, h.tmp), dir: filepath.Join(h.dir, name), log: logFile(h.dir, name),
		ready: ready,
	})
	if err != nil {
		return err
	}
	h.out.report("%s ready after %s", name, since(began))

	return nil
}

// CloudURL returns the address of the cloud.
func (h *Host) CloudURL() string { return h.cloudURL }

// Dir returns the directory with the logs of the Host, and a directory for each of its clusters.
func (h *Host) Dir() string { return h.dir }

// Close destroys the Host's clusters and stops the Host.
func (h *Host) Close() error {
	h.mu.Lock()
	clusters := slices.Clone(h.clusters) // Destroy removes them from h.clusters.
	h.mu.Unlock()
	var errs []error
	for _, c := range clusters {
		errs = append(errs, c.Destroy())
	}

	return errors.Join(append(errs, h.killAll(), h.reaper.close())...)
}

func program(set build.Set, name string) (build.Artifact, error) {
	a, ok := set[name]
	if !ok {
		return build.Artifact{}, fmt.Errorf("cannot find %s among the programs that were built", name)
	}

	return a, nil
}
