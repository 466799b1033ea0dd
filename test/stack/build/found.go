package build

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// ProgramsEnv is the variable with folders, separated as in PATH, of programs that need not be built:
// those that setup-envtest of controller-runtime downloads, or the folder bin of another cache of
// this package. The value PATH stands for the folders of that variable.
const ProgramsEnv = "STACK_PROGRAMS"

// askTimeout limits how long a program may take to say its version.
const askTimeout = 10 * time.Second

// versionRE matches the version in the output of a program.
var versionRE = regexp.MustCompile(`\bv?(\d+\.\d+\.\d+)\b`)

// folders returns the folders of ProgramsEnv.
func folders() []string {
	named := os.Getenv(ProgramsEnv)
	if named == "PATH" {
		named = os.Getenv(named)
	}

	return slices.DeleteFunc(filepath.SplitList(named), func(dir string) bool { return dir == "" })
}

// find puts the named programs that the folders have into the set, and reports each, and those that
// do not fit with the reason. It returns the rest.
func (b *builder) find(ctx context.Context, missing []Recipe) ([]Recipe, error) {
	dirs := folders()
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && !info.IsDir() || err != nil && os.Getenv(ProgramsEnv) != "PATH" {
			return nil, fmt.Errorf("cannot find programs in %s, which %s names: it is no folder", dir, ProgramsEnv)
		}
	}
	var rest []Recipe
	for _, r := range missing {
		a, err := b.findOne(ctx, r, dirs)
		if err != nil {
			return nil, err
		}
		if a.Path == "" {
			rest = append(rest, r)

			continue
		}
		b.set[r.Name] = a
	}

	return rest, nil
}

// findOne returns the program of a recipe in the first folder that has one that fits.
func (b *builder) findOne(ctx context.Context, r Recipe, dirs []string) (Artifact, error) {
	for _, dir := range dirs {
		if a, ok := cachedIn(dir, r); ok {
			b.report("%s %s from %s", r.Name, r.Version, a.Path)

			return a, nil
		}
		if !r.replaceable() {
			continue
		}
		for _, name := range slices.Compact([]string{r.Name, path.Base(r.target())}) {
			file := filepath.Join(dir, name)
			if info, err := os.Stat(file); err != nil || info.IsDir() {
				continue
			}
			has, err := versionOf(ctx, file, r)
			if err == nil {
				err = r.fits(has)
			}
			if err != nil {
				b.report("%s %s is built, since %s does not fit: %v", r.Name, r.Version, file, err)

				continue
			}
			b.report("%s %s from %s", r.Name, has, file)
			absolute, err := filepath.Abs(file)
			if err != nil {
				return Artifact{}, fmt.Errorf("cannot find %s: %w", file, err)
			}

			return Artifact{Path: absolute}, nil
		}
	}

	return Artifact{}, nil
}

// replaceable reports whether a published program can stand for that of the recipe: one that needs
// neither files of its module nor a metrics address that only a build can set.
func (r Recipe) replaceable() bool {
	return r.Assets == "" && !slices.Contains(r.Ldflags, noMetrics)
}

// fits returns an error unless a program's version can stand for that of the recipe: it has the same
// minor, or is an etcd of the same major, since Kubernetes works with each of these.
func (r Recipe) fits(has string) error {
	want, err := version.ParseGeneric(r.Version)
	if err != nil {
		return fmt.Errorf("cannot read the version %s: %w", r.Version, err)
	}
	got, err := version.ParseGeneric(has)
	if err != nil {
		return fmt.Errorf("cannot read the version %s: %w", has, err)
	}
	if got.Major() != want.Major() || got.Minor() != want.Minor() && r.Name != "etcd" {
		return fmt.Errorf("its version is %s", has)
	}

	return nil
}

// versionOf returns the version of a program: that of its module if it was built from one, and
// otherwise what it prints.
func versionOf(ctx context.Context, file string, r Recipe) (string, error) {
	if info, err := buildinfo.ReadFile(file); err == nil {
		for _, m := range append(info.Deps, &info.Main) {
			if (m.Path == r.Module || m.Path == r.path()) && versionRE.MatchString(m.Version) {
				return m.Version, nil
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, file, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("cannot ask its version: %w", err)
	}
	found := versionRE.FindSubmatch(out)
	if found == nil {
		return "", errors.New("it prints no version")
	}

	return "v" + string(found[1]), nil
}
