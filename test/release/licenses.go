package release

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// licenseFile matches the files of a module that its license requires a distributor to include.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)([-.].*)?$`)

// licenses returns the licenses of all modules in a program, and of Go. It fails if one has none.
func (b bill) licenses(ctx context.Context, root string) ([]byte, error) {
	goroot, err := goOutput(ctx, root, b.GoVersion, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	fmt.Fprintf(&all, "%s contains the following. Their licenses follow.\n", Name)
	names, list := []string{"Go " + b.GoVersion}, []string{"list", "-m", "-f", "{{.Dir}}"}
	for _, m := range b.Deps {
		names, list = append(names, m.Path+" "+m.Version), append(list, m.Path)
	}
	dirs, err := goOutput(ctx, root, b.GoVersion, list...)
	if err != nil {
		return nil, err
	}
	for i, dir := range append([]string{goroot}, strings.Split(dirs, "\n")...) {
		if err := writeLicenses(&all, names[i], dir); err != nil {
			return nil, fmt.Errorf("cannot copy the license of %s: %w", names[i], err)
		}
	}

	return all.Bytes(), nil
}

func writeLicenses(w io.Writer, name, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !licenseFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(w, "\n%s\n%s, %s\n\n%s\n", strings.Repeat("=", 80), name, e.Name(), bytes.TrimSpace(text))
	}
	if !found {
		return fmt.Errorf("there is none in %s", dir)
	}

	return nil
}

// goOutput runs the go command of a version and returns its output.
func goOutput(ctx context.Context, dir, version string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOTOOLCHAIN="+version, "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot ask go %s: %w", strings.Join(args, " "), err)
	}

	return strings.TrimSpace(string(out)), nil
}
