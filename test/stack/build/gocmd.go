package build

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A download is the part of the output of "go mod download -json" that this package reads.
type download struct {
	GoMod string
	Dir   string
	Error string
}

// A modFile is the part of the output of "go mod edit -json" that this package reads.
type modFile struct {
	Go      string
	Replace []struct {
		Old struct{ Path string }
		New struct{ Path string }
	}
}

// fetch writes the wrapper module of a recipe and downloads every module that its program is built
// from.
func (b *builder) fetch(ctx context.Context, r Recipe) error {
	dir := b.wrapper(r)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the wrapper module of %s: %w", r.Name, err)
	}
	got, err := b.download(ctx, r)
	if err != nil {
		return err
	}
	out, err := b.run(ctx, r, b.cache, "mod", "edit", "-json", got.GoMod)
	if err != nil {
		return err
	}
	var mod modFile
	if err := json.Unmarshal(out, &mod); err != nil {
		return fmt.Errorf("cannot read the go.mod of %s %s: %w", r.Module, r.Version, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(wrapperMod(r, mod)), 0o644); err != nil {
		return fmt.Errorf("cannot write the wrapper module of %s: %w", r.Name, err)
	}
	if err := writeStubs(dir, r.Stubs); err != nil {
		return err
	}
	_, err = b.run(ctx, r, dir, "list", "-deps", "-f", "{{.ImportPath}}", r.target())

	return err
}

func (b *builder) download(ctx context.Context, r Recipe) (download, error) {
	var d download
	out, err := b.run(ctx, r, b.cache, "mod", "download", "-json", r.Module+"@"+r.Version)
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(out, &d); err != nil {
		return d, fmt.Errorf("cannot read where the go command put %s %s: %w", r.Module, r.Version, err)
	}

	return d, nil
}

func wrapperMod(r Recipe, mod modFile) string {
	replaces := r.Replaces
	if r.Staging {
		var staged []string
		for _, rep := range mod.Replace {
			if strings.HasPrefix(rep.New.Path, "./staging/") {
				staged = append(staged, rep.Old.Path)
			}
		}
		replaces = append(stagingReplaces(staged, r.Version), replaces...)
	}
	replaces = slices.Concat(replaces, stubReplaces(r.Stubs))
	if r.As != "" {
		replaces = append(replaces, fmt.Sprintf("%s => %s %s", r.As, r.Module, r.Version))
	}
	var s strings.Builder
	fmt.Fprintf(&s, "module wrapper\n\ngo %s\n\nrequire %s %s\n", mod.Go, r.path(), r.Version)
	for _, rep := range replaces {
		fmt.Fprintf(&s, "\nreplace %s\n", rep)
	}

	return s.String()
}

// build builds the program and its assets in a temporary directory and then renames that, so that
// the cache never has half of a program.
func (b *builder) build(ctx context.Context, r Recipe) error {
	tmp, err := os.MkdirTemp(b.cache, "building-")
	if err != nil {
		return fmt.Errorf("cannot make a directory to build %s in: %w", r.Name, err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()

	ldflags := strings.Join(append([]string{"-s -w"}, r.Ldflags...), " -X ")
	if _, err := b.run(ctx, r, b.wrapper(r), "build", "-trimpath", "-ldflags", ldflags, "-o", filepath.Join(tmp, r.Name), r.target()); err != nil {
		return err
	}
	if r.Assets != "" {
		got, err := b.download(ctx, r)
		if err != nil {
			return err
		}
		if err := os.CopyFS(filepath.Join(tmp, "assets"), os.DirFS(filepath.Join(got.Dir, r.Assets))); err != nil {
			return fmt.Errorf("cannot copy %s of %s: %w", r.Assets, r.Module, err)
		}
	}
	if err := os.Chmod(tmp, 0o755); err != nil { //nolint:gosec // It is a directory.
		return fmt.Errorf("cannot open the directory of %s to others: %w", r.Name, err)
	}
	if err := os.MkdirAll(filepath.Dir(b.dir(r)), 0o755); err != nil {
		return fmt.Errorf("cannot make the directory of %s: %w", r.Name, err)
	}
	if err := os.RemoveAll(b.dir(r)); err != nil {
		return fmt.Errorf("cannot clear the directory of %s: %w", r.Name, err)
	}
	if err := os.Rename(tmp, b.dir(r)); err != nil {
		return fmt.Errorf("cannot move %s into place: %w", r.Name, err)
	}

	return nil
}

func (b *builder) wrapper(r Recipe) string {
	return filepath.Join(b.cache, "wrapper", r.Name+"-"+r.Version)
}

// run runs the go command for a recipe and returns its stdout. Its error ends with the end of
// stderr.
func (b *builder) run(ctx context.Context, r Recipe, dir string, args ...string) ([]byte, error) {
	env := append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off")

	return goCommand(ctx, dir, append(env, r.Env...), r.Name+" "+r.Version, args...)
}

func goCommand(ctx context.Context, dir string, env []string, what string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		// With -json, "go mod download" prints its errors on stdout.
		output := Tail(stderr.String() + stdout.String())

		return nil, fmt.Errorf("cannot build %s: go %s: %w\n%s", what, args[0], err, output)
	}

	return stdout.Bytes(), nil
}

// Tail returns the last lines of a text.
func Tail(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")

	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
