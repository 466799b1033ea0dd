package stack

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// UsePlugin gives Velero this repository's plugin, or removes it, and restarts Velero.
func (c *Cluster) UsePlugin(ctx context.Context, use bool) error {
	path, err := c.ownPlugin(use)
	if err != nil {
		return err
	}

	return c.UsePluginFile(ctx, path)
}

// ownPlugin returns the path of this repository's plugin, or "" for none.
func (c *Cluster) ownPlugin(use bool) (string, error) {
	if !use {
		return "", nil
	}

	return c.program("plugin")
}

// UsePluginFile gives Velero another build of the plugin, and restarts Velero.
func (c *Cluster) UsePluginFile(ctx context.Context, path string) error {
	if err := c.LinkPluginFile(path); err != nil {
		return err
	}
	if err := c.applyVeleroDeployment(ctx); err != nil {
		return err
	}

	return c.RestartVelero(ctx)
}

// LinkPlugin gives Velero the plugin, or removes it, from Velero's next start on.
func (c *Cluster) LinkPlugin(use bool) error {
	path, err := c.ownPlugin(use)
	if err != nil {
		return err
	}

	return c.LinkPluginFile(path)
}

// LinkPluginFile gives Velero a file as the plugin, or none for "", from Velero's next start on.
func (c *Cluster) LinkPluginFile(path string) error {
	link := filepath.Join(c.pluginDir(), "plugin")
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot take the plugin away from Velero: %w", err)
	}
	if path != "" {
		if err := c.linkPlugin("plugin", path); err != nil {
			return fmt.Errorf("cannot give Velero the plugin: %w", err)
		}
	}
	c.options.Plugin = path != ""

	return nil
}

// Plugin runs the plugin as a command on this cluster and returns its output and exit code. If
// kubeconfig is "", it uses the administrator's. It fails only if the command can't run.
func (c *Cluster) Plugin(ctx context.Context, kubeconfig string, args ...string) (stdout, stderr string, code int, err error) {
	return c.PluginWith(ctx, kubeconfig, nil, args...)
}

// PluginWith is Plugin with more environment variables.
func (c *Cluster) PluginWith(ctx context.Context, kubeconfig string, env []string, args ...string) (stdout, stderr string, code int, err error) {
	path, err := c.program("plugin")
	if err != nil {
		return "", "", 0, err
	}
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, &out, &problems
	cmd.Env = environment(c.dir, c.host.tmp, append(env, "KUBECONFIG="+cmp.Or(kubeconfig, c.kubeconfig))...)
	code, err = exitCode(cmd)

	return out.String(), problems.String(), code, err
}

// exitCode runs a command to its end. It fails only if the command can't run.
func exitCode(cmd *exec.Cmd) (int, error) {
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() < 0) {
		return 0, fmt.Errorf("cannot run %s: %w", strings.Join(cmd.Args, " "), err)
	}

	return cmd.ProcessState.ExitCode(), nil
}
