package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// UsePlugin gives Velero the plugin that this repository is about, or takes it away, and restarts it.
func (c *Cluster) UsePlugin(ctx context.Context, use bool) error {
	link := filepath.Join(c.dir, "plugins", "plugin")
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot take the plugin away from Velero: %w", err)
	}
	if use {
		path, err := c.program("plugin")
		if err != nil {
			return err
		}
		if err := os.Symlink(path, link); err != nil {
			return fmt.Errorf("cannot give Velero the plugin: %w", err)
		}
	}
	c.options.Plugin = use

	return c.RestartVelero(ctx)
}
