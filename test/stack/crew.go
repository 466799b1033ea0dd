package stack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// A Crew is the components of a Host or a Cluster: its long-running processes, by name.
type Crew struct {
	keeper *keeper

	mu      sync.Mutex
	members []*component
}

// Start starts a component that was stopped and waits until it is ready. It returns an error with
// the end of its log if it isn't in time.
func (c *Crew) Start(ctx context.Context, name string) error {
	m, err := c.find(name)
	if err != nil {
		return err
	}
	if err := m.start(c.keeper); err != nil {
		return err
	}

	return m.await(ctx)
}

// Stop stops a component the way a person would: SIGTERM, and SIGKILL to it and its children after
// a few seconds.
func (c *Crew) Stop(name string) error {
	m, err := c.find(name)
	if err != nil {
		return err
	}

	return m.stop()
}

// Kill kills a component and its children without a warning, as a crash would.
func (c *Crew) Kill(name string) error {
	m, err := c.find(name)
	if err != nil {
		return err
	}

	return m.kill()
}

// AddArgs adds arguments to the command line of a component, from its next start on. They win over
// what is there.
func (c *Crew) AddArgs(name string, args ...string) error {
	m, err := c.find(name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.args = append(m.args, args...)

	return nil
}

// Restart stops a component, starts it again and waits until it is ready.
func (c *Crew) Restart(ctx context.Context, name string) error {
	if err := c.Stop(name); err != nil {
		return err
	}

	return c.Start(ctx, name)
}

// Err returns an error, with the end of the log, for every component that ended without having been
// told to.
func (c *Crew) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, m := range c.members {
		errs = append(errs, m.died())
	}

	return errors.Join(errs...)
}

// Log returns the path of a component's log file, which holds all its runs.
func (c *Crew) Log(name string) (string, error) {
	m, err := c.find(name)
	if err != nil {
		return "", err
	}

	return m.log, nil
}

// launch adds a component, starts it and waits until it is ready.
func (c *Crew) launch(ctx context.Context, m *component) error {
	c.mu.Lock()
	c.members = append(c.members, m)
	c.mu.Unlock()

	return c.Start(ctx, m.name)
}

func (c *Crew) find(name string) (*component, error) {
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
func (c *Crew) killAll() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var kills []func() error
	for _, m := range c.members {
		kills = append(kills, m.kill)
	}

	return parallel(kills...)
}
