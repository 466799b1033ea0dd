package hooks

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

func newInstall(o *options) *cobra.Command {
	target := ""
	c := &cobra.Command{
		Use:   "install",
		Short: "Copy this program to where Velero looks for plugins",
		Long: `The image of this plugin runs install when it is started without a command: as the init container that "velero plugin add" adds, and in any other
container with a volume at /target. It copies this program there, whole or not at all, over an earlier version. It needs no shell, no rights in the cluster
and no network.`,
		Example: `  # What the init container does
  ` + Name + ` install

  # Into the directory of a Velero server outside of a cluster (velero server --plugin-dir)
  ` + Name + ` install --target /opt/velero/plugins`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			program, err := os.Executable()
			if err != nil {
				return failed(reason.InstallFailed.Errorf("cannot install: the path of this program is unknown: %w", err))
			}
			installed, err := install(program, target)
			if err != nil {
				return failed(err)
			}
			fmt.Fprintf(o.Err, "Installed %s %s as %s\n", Name, o.Version, installed)

			return nil
		},
	}
	// "velero plugin add" mounts Velero's plugin directory at /target.
	c.Flags().StringVar(&target, "target", "/target", "directory to copy this program to")
	_ = c.MarkFlagDirname("target") // It fails only without the flag.

	return c
}

// install copies a program into a directory and returns the path of the copy. It writes a temporary
// file and renames it: Velero's server runs each executable file in its plugin directory, and does
// not start if one is incomplete.
func install(program, dir string) (string, error) {
	to := filepath.Join(dir, Name)
	beside, err := os.CreateTemp(dir, "."+Name+"-*")
	if err != nil {
		return "", reason.InstallFailed.Errorf("cannot install into %s: %w; %s", dir, errors.Unwrap(err), hintFor(err))
	}
	defer func() { _, _ = beside.Close(), os.Remove(beside.Name()) }() // After a successful copy neither does anything.
	if err = copyProgram(beside, program); err == nil {
		err = os.Rename(beside.Name(), to)
	}
	if err != nil {
		return "", reason.InstallFailed.Errorf("cannot install %s: %w", to, err)
	}

	return to, nil
}

// executableMode lets any user run the program, as Velero's server may be any user.
const executableMode = 0o755

// copyProgram copies the program into a file, makes it executable and closes it.
func copyProgram(file *os.File, program string) error {
	from, err := os.Open(program) //nolint:gosec // It is this program.
	if err != nil {
		return fmt.Errorf("cannot read this program: %w", err)
	}
	defer func() { _ = from.Close() }()
	_, err = io.Copy(file, from)
	if err := errors.Join(err, file.Sync(), file.Chmod(executableMode), file.Close()); err != nil {
		return fmt.Errorf("cannot copy %s: %w", program, err)
	}

	return nil
}

// hintFor returns what to do if the target cannot be written.
func hintFor(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Sprintf("allow the user %d to write to it, as an emptyDir does", os.Getuid())
	}

	return `mount the volume "plugins" of Velero's Deployment there, as "velero plugin add" does`
}
