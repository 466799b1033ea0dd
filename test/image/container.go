package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// Target is the mount path of the volume of plugins in a Container, as with "velero plugin add".
const Target = "/target"

// A Container is an unpacked image with the volume of plugins: a folder with write access for all
// users, like the kubelet's emptyDir.
type Container struct {
	dir    string
	config v1.Config
}

// Unpack unpacks an image to a folder that does not exist yet.
func Unpack(image v1.Image, dir string) (*Container, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("cannot read the image's configuration: %w", err)
	}
	c := &Container{dir: dir, config: config.Config}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	files := mutate.Extract(image)
	err = untar(files, dir)
	if err := errors.Join(err, files.Close()); err != nil {
		return nil, fmt.Errorf("cannot unpack the image: %w", err)
	}
	// A container has these folders besides its image's files.
	for _, volume := range []string{"/proc", Target} {
		if err := os.Mkdir(inside(dir, volume), 0o755); err != nil {
			return nil, fmt.Errorf("cannot mount %s: %w", volume, err)
		}
	}

	return c, os.Chmod(inside(dir, Target), 0o777) //nolint:gosec // Another user writes to it.
}

func untar(files io.Reader, dir string) error {
	for t := tar.NewReader(files); ; {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		to := inside(dir, header.Name)
		switch header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(to, 0o755)
		case tar.TypeReg:
			var b []byte
			if b, err = io.ReadAll(t); err == nil {
				err = os.WriteFile(to, b, header.FileInfo().Mode())
			}
		default:
			err = fmt.Errorf("%s is neither a file nor a folder", header.Name)
		}
		if err != nil {
			return err
		}
	}
}

// Path returns the path of a container's file on this machine.
func (c *Container) Path(file string) string { return inside(c.dir, file) }

// Program returns the path of the entrypoint on this machine.
func (c *Container) Program() string { return c.Path(c.config.Entrypoint[0]) }

// Start runs the image as a container with the image's own command, to its end, and returns its
// output. As root, it runs in its own root file system as the image's user. Otherwise it runs as
// the current user and gets the volume's path in an argument. alone reports whether it had its own
// root.
func (c *Container) Start(ctx context.Context) (out string, alone bool, err error) {
	args := slices.Concat(c.config.Entrypoint, c.config.Cmd)
	alone = os.Getuid() == 0
	if alone {
		user, group, ok := strings.Cut(c.config.User, ":")
		if !ok {
			return "", alone, fmt.Errorf("cannot run the image as %q: that is no user and group", c.config.User)
		}
		args = append([]string{
			"unshare", "--mount", "--pid", "--ipc", "--net", "--fork", "--kill-child", "--mount-proc",
			"--root=" + c.dir, "--wd=/", "--setgid=" + group, "--setuid=" + user,
		}, args...)
	} else {
		args = append(append([]string{c.Program()}, args[1:]...), "--target="+c.Path(Target))
	}
	var b bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = c.dir, &b, &b, []string{}
	if err := cmd.Run(); err != nil {
		return b.String(), alone, fmt.Errorf("cannot run %s: %w: %s", strings.Join(args, " "), err, b.String())
	}

	return b.String(), alone, nil
}

// Installed returns the path on this machine of the program that the container has put into its
// volume. It fails unless there is exactly one.
func (c *Container) Installed() (string, error) {
	entries, err := os.ReadDir(c.Path(Target))
	if err != nil {
		return "", err
	}
	if len(entries) != 1 {
		return "", fmt.Errorf("cannot find the program in the volume: there are %d files", len(entries))
	}

	return filepath.Join(c.Path(Target), entries[0].Name()), nil
}
