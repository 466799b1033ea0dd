package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNoJail means that this machine can't put a plugin into a jail.
var ErrNoJail = errors.New("cannot give up rights and make file systems read-only here")

// A Jail runs Velero's plugin as a user without privileges or a home, with every file system
// read-only but one directory, as in a Pod with runAsNonRoot and readOnlyRootFilesystem. Commands
// run there too.
type Jail struct {
	cluster *Cluster
	dir     string
}

// The program in a jail keeps the process ID, because Velero kills its plugins by ID. The user
// can't read the directories of programs and of the cluster, so the needed files are copied. A
// plugin reports the path by which it was started, and Velero starts it by that path again. So the
// path is that of the program inside of the jail, and that of the script that enters the jail
// outside of it.
const jailScript = `#!/bin/sh
exec unshare --mount -- /bin/sh -ec '
root=%[1]s/root sockets=%[1]s/sockets
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$root"
cp %[2]s "$root/plugin"
mount --bind "$root/plugin" %[1]s/plugin
cp %[3]s "$root/kubeconfig"
chmod 644 "$root/kubeconfig"
mount --bind "$sockets" "$sockets"
cut -d" " -f5 /proc/self/mountinfo | while read -r m; do
	[ "$m" = "$sockets" ] || mount -o remount,bind,ro "$(printf %%b "$m")"
done
unset HOME TMPDIR
export KUBECONFIG="$root/kubeconfig" PLUGIN_UNIX_SOCKET_DIR="$sockets"
[ "$1" = plugin ] && shift && set -- %[1]s/plugin "$@"
exec setpriv --reuid=65532 --regid=65532 --clear-groups --bounding-set=-all --no-new-privs "$@"
' sh "$@"
`

// JailPlugin makes Velero run the plugin in a jail from now on, until Free. It fails with ErrNoJail
// if this machine can have no jail.
func (c *Cluster) JailPlugin(ctx context.Context) (*Jail, error) {
	program, err := c.program("plugin")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "jail-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a jail: %w", err)
	}
	j := &Jail{cluster: c, dir: dir}
	if err := j.build(ctx, program); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}

	return j, c.RestartVelero(ctx)
}

func (j *Jail) build(ctx context.Context, program string) error {
	script := fmt.Sprintf(jailScript, j.dir, program, j.cluster.kubeconfig)
	link := filepath.Join(j.cluster.dir, "plugins", "plugin")
	err := errors.Join(
		os.Chmod(j.dir, 0o755), //nolint:gosec // Another user runs what is in it.
		os.Mkdir(filepath.Join(j.dir, "root"), 0o755),
		os.Mkdir(j.Sockets(), 0o755),
		os.Chmod(j.Sockets(), 0o777),                    //nolint:gosec // The same.
		os.WriteFile(j.script(), []byte(script), 0o700), //nolint:gosec // It is run.
		os.WriteFile(filepath.Join(j.dir, "plugin"), fmt.Appendf(nil, "#!/bin/sh\nexec %s plugin \"$@\"\n", j.script()), 0o700), //nolint:gosec // The same.
	)
	if err != nil {
		return fmt.Errorf("cannot make a jail: %w", err)
	}
	if out, code, err := j.Run(ctx, "true"); err != nil || code != 0 {
		return fmt.Errorf("%w: exit code %d: %s", errors.Join(ErrNoJail, err), code, out)
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot take the plugin away from Velero: %w", err)
	}
	if err := os.Symlink(filepath.Join(j.dir, "plugin"), link); err != nil {
		return fmt.Errorf("cannot put the plugin into a jail: %w", err)
	}

	return nil
}

func (j *Jail) script() string { return filepath.Join(j.dir, "jail") }

// Sockets returns the one writable directory.
func (j *Jail) Sockets() string { return filepath.Join(j.dir, "sockets") }

// Run runs a program in the jail and returns its output and exit code. The program "plugin" is the
// plugin.
func (j *Jail) Run(ctx context.Context, args ...string) (out string, code int, err error) {
	var b bytes.Buffer
	cmd := exec.CommandContext(ctx, j.script(), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", &b, &b
	cmd.Env = environment(j.cluster.dir, j.cluster.host.tmp)
	code, err = exitCode(cmd)

	return b.String(), code, err
}

// Free makes Velero run the plugin as before, and removes the jail.
func (j *Jail) Free(ctx context.Context) error {
	return errors.Join(j.cluster.UsePlugin(ctx, true), os.RemoveAll(j.dir))
}
