package stack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Components are the long-running processes of a Host or a Cluster, by name.
type Components struct {
	reaper *reaper

	mu      sync.Mutex
	members []*component
}

// Start starts a stopped component and waits until it is ready. If it is not ready in time, the
// error has the end of its log.
func (c *Components) Start(ctx context.Context, name string) error {
	return c.with(name, func(m *component) error {
		if err := m.start(c.reaper); err != nil {
			return err
		}

		return m.await(ctx)
	})
}

// Stop stops a component as a user would: with SIGTERM, and after stopTimeout with SIGKILL to it
// and its children.
func (c *Components) Stop(name string) error { return c.with(name, (*component).stop) }

// Kill kills a component and its children without a warning, as a crash would.
func (c *Components) Kill(name string) error { return c.with(name, (*component).kill) }

// AddArgs adds arguments to the command line of a component, from its next start on. They override
// the arguments there.
func (c *Components) AddArgs(name string, args ...string) error {
	return c.with(name, func(m *component) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.args = append(m.args, args...)

		return nil
	})
}

// Restart stops a component, starts it again and waits until it is ready.
func (c *Components) Restart(ctx context.Context, name string) error {
	if err := c.Stop(name); err != nil {
		return err
	}

	return c.Start(ctx, name)
}

// Err returns an error, with the end of the log, for every component that ended without being
// stopped.
func (c *Components) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, m := range c.members {
		errs = append(errs, m.died())
	}

	return errors.Join(errs...)
}

// Log returns the path of a component's log file, which holds all its runs.
func (c *Components) Log(name string) (log string, err error) {
	err = c.with(name, func(m *component) error { log = m.log; return nil })

	return log, err
}

// launch adds a component, starts it and waits until it is ready.
func (c *Components) launch(ctx context.Context, m *component) error {
	c.mu.Lock()
	c.members = append(c.members, m)
	c.mu.Unlock()

	return c.Start(ctx, m.name)
}

// with calls a function with a component.
func (c *Components) with(name string, do func(*component) error) error {
	m, err := c.find(name)
	if err != nil {
		return err
	}

	return do(m)
}

func (c *Components) find(name string) (*component, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, m := range c.members {
		if m.name == name {
			return m, nil
		}
		names = append(names, m.name)
	}

	return nil, fmt.Errorf("cannot find component %q: there are %s", name, strings.Join(names, ", "))
}

// killAll kills every component.
func (c *Components) killAll() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var kills []func() error
	for _, m := range c.members {
		kills = append(kills, m.kill)
	}

	return parallel(kills...)
}
