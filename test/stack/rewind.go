package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Save keeps all data stored in the cluster under a name, for Rewind. Etcd's files are consistent
// only while it is stopped. So Save stops all components, and then starts those that ran before.
func (c *Cluster) Save(ctx context.Context, name string) error {
	running := c.running()
	if err := c.halt(); err != nil {
		return fmt.Errorf("cannot save cluster %s: %w", c.options.Name, err)
	}
	if err := replaceDir(c.saved(name), c.etcdData()); err != nil {
		return fmt.Errorf("cannot save cluster %s: %w", c.options.Name, err)
	}

	return c.resume(ctx, running)
}

// Rewind makes the cluster store the data that Save has kept under a name, without later changes.
// The log of its requests starts empty. Only the control plane, Velero and the named components run
// afterwards, each just started.
func (c *Cluster) Rewind(ctx context.Context, name string, with ...string) error {
	began := time.Now()
	if err := c.killAll(); err != nil {
		return fmt.Errorf("cannot rewind cluster %s: %w", c.options.Name, err)
	}
	if err := replaceDir(c.etcdData(), c.saved(name)); err != nil {
		return fmt.Errorf("cannot rewind cluster %s to %q: %w", c.options.Name, name, err)
	}
	if err := os.Remove(c.auditFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot begin a new log of requests: %w", err)
	}
	if err := c.resume(ctx, append([]string{ControllerManager, Velero}, with...)); err != nil {
		return err
	}
	c.report(began, "saved state "+name)

	return nil
}

// running returns the names of the components that run.
func (c *Components) running() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, m := range c.members {
		if m.pid() != 0 {
			names = append(names, m.name)
		}
	}

	return names
}

// halt stops the clients of the API server, then the API server, then etcd, so that each can write
// its last data.
func (c *Cluster) halt() error {
	var clients []func() error
	for _, name := range c.running() {
		if name != Etcd && name != APIServer {
			clients = append(clients, func() error { return c.Stop(name) })
		}
	}
	if err := parallel(clients...); err != nil {
		return err
	}
	if err := c.Kill(APIServer); err != nil { // It has no data to write, and waits long for watches to end.
		return err
	}

	return c.Stop(Etcd)
}

// resume starts etcd and the API server, then the named components.
func (c *Cluster) resume(ctx context.Context, names []string) error {
	for _, name := range []string{Etcd, APIServer} {
		if err := c.Start(ctx, name); err != nil {
			return err
		}
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == Etcd || name == APIServer })
	starts := make([]func() error, len(names))
	for i, name := range names {
		starts[i] = func() error { return c.Start(ctx, name) }
	}

	return parallel(starts...)
}

func (c *Cluster) etcdData() string { return filepath.Join(c.dir, Etcd, "data") }

func (c *Cluster) saved(name string) string { return filepath.Join(c.dir, "saved-"+name) }

// replaceDir makes one directory a copy of the other.
func replaceDir(to, from string) error {
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("cannot remove %s: %w", to, err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("cannot copy %s to %s: %w", from, to, err)
	}
	// CopyFS does not keep the mode of a directory, and etcd warns about a directory that other
	// users can read.
	if err := os.Chmod(to, 0o700); err != nil { //nolint:gosec // It is a directory.
		return fmt.Errorf("cannot close %s to others: %w", to, err)
	}

	return nil
}
