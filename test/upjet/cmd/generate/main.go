// The generate command writes upjet's output for package config: the kinds, their controllers and
// their CRDs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/crossplane/upjet/v2/pkg/pipeline"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/upjet/config"
)

func main() {
	root := flag.String("root", ".", "Directory of the module.")
	flag.Parse()

	if err := run(context.Background(), *root); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the pipeline, which panics if it fails, and removes the files that only the pipeline
// needs.
func run(ctx context.Context, root string) (err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("cannot find the module: %w", err)
	}
	hack, examples := filepath.Join(root, "hack"), filepath.Join(root, "examples-generated")
	bin, err := os.MkdirTemp("", "generate-")
	if err != nil {
		return fmt.Errorf("cannot make a directory for goimports: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(hack), os.RemoveAll(examples), os.RemoveAll(bin)) }()

	if err := clean(root, "apis", "internal/controller", "crds"); err != nil {
		return err
	}
	// The pipeline finds goimports in $PATH, and requires a header for each file.
	if err := command(ctx, root, "go", "build", "-modfile=tools.mod", "-o", bin, "golang.org/x/tools/cmd/goimports"); err != nil {
		return err
	}
	if err := os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return fmt.Errorf("cannot set $PATH: %w", err)
	}
	if err := os.MkdirAll(hack, 0o755); err != nil {
		return fmt.Errorf("cannot make a directory for the header: %w", err)
	}
	if err := os.WriteFile(filepath.Join(hack, "boilerplate.go.txt"), nil, 0o644); err != nil {
		return fmt.Errorf("cannot write the header: %w", err)
	}
	// Upjet does not write a version again that it has written before. A resource that differs now
	// has another version, and the rest is written again.
	cluster, namespaced := config.Before(ctx)
	pipeline.Run(cluster, namespaced, root)
	pipeline.Run(config.Cluster(ctx), config.Namespaced(ctx), root)

	return errors.Join(
		command(ctx, root, "go", "tool", "-modfile=tools.mod", "controller-gen", "object", "paths=./apis/...", "crd:crdVersions=v1", "output:crd:dir=crds"),
		methods(ctx, root),
		convert(filepath.Join(root, "crds")),
	)
}

// methods writes the methods of the kinds with angryjet. Upjet's conversion code does not compile
// without them, and angryjet can't read packages that don't compile. So the conversions are moved
// aside meanwhile.
func methods(ctx context.Context, root string) (err error) {
	spokes, err := filepath.Glob(filepath.Join(root, "apis", "*", "*", "*", "zz_generated.conversion_spokes.go"))
	if err != nil {
		return fmt.Errorf("cannot find the conversions: %w", err)
	}
	defer func() {
		for _, path := range spokes {
			err = errors.Join(err, os.Rename(path+".aside", path))
		}
	}()
	for _, path := range spokes {
		if err := os.Rename(path, path+".aside"); err != nil {
			return fmt.Errorf("cannot put the conversions aside: %w", err)
		}
	}

	return command(ctx, root, "go", "tool", "-modfile=tools.mod", "angryjet", "generate-methodsets", "./apis/...")
}

// conversion configures the provider's webhook to convert a kind.
const conversion = `  conversion:
    strategy: Webhook
    webhook:
      clientConfig:
        service: {name: provider-upjet, namespace: crossplane-system, path: /convert}
      conversionReviewVersions: [v1]
`

// convert adds conversion to the CRDs with two versions. Upjet's providers do that when they build
// their packages.
func convert(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return fmt.Errorf("cannot find the CRDs: %w", err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("cannot read a CRD: %w", err)
		}
		before, after, found := strings.Cut(string(b), "\nspec:\n")
		if strings.Count(after, "\n    served: true\n") < 2 || !found {
			continue
		}
		if err := os.WriteFile(path, []byte(before+"\nspec:\n"+conversion+after), 0o644); err != nil {
			return fmt.Errorf("cannot write a CRD: %w", err)
		}
	}

	return nil
}

// clean removes generated files of an earlier run.
func clean(root string, dirs ...string) error {
	module, err := os.OpenRoot(root)
	if err != nil {
		return fmt.Errorf("cannot open the module: %w", err)
	}
	defer module.Close() //nolint:errcheck // Nothing was written through it.

	for _, dir := range dirs {
		err := fs.WalkDir(module.FS(), dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (strings.HasPrefix(d.Name(), "zz_") || strings.HasSuffix(path, ".yaml")) {
				return module.Remove(path)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}

			return err
		})
		if err != nil {
			return fmt.Errorf("cannot remove what was generated in %s: %w", dir, err)
		}
	}

	return nil
}

func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot %s %s: %w", name, strings.Join(args, " "), err)
	}

	return nil
}
