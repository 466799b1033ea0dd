// Package externalname reads the sources of upjet providers, finds the kinds whose external-name
// follows from status.atProvider.id, and writes the plugin's table of them. It needs no network:
// the sources are local git repositories.
package externalname

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Repository is the path of a git repository or of its checkout.
type Repository string

// release matches the versions to read: all since v1.0.0 without pre-releases.
var release = regexp.MustCompile(`^v[1-9]\d*\.\d+\.\d+$`)

// Versions returns the tagged versions to read, the oldest first.
func (r Repository) Versions(ctx context.Context) ([]string, error) {
	out, err := r.git(ctx, "tag", "--list", "--sort=version:refname", "v*")
	if err != nil {
		return nil, err
	}
	versions := slices.DeleteFunc(strings.Fields(string(out)), func(tag string) bool { return !release.MatchString(tag) })
	if len(versions) == 0 {
		return nil, fmt.Errorf("cannot find a version in %s: it has no tag such as v1.2.0", r)
	}

	return versions, nil
}

// Commit returns the commit of a version.
func (r Repository) Commit(ctx context.Context, version string) (string, error) {
	out, err := r.git(ctx, "rev-parse", "--verify", "--short=12", version+"^{commit}")

	return strings.TrimSpace(string(out)), err
}

// Folders of a provider, and the files of its kinds.
const (
	dirConfig, dirKinds = "config", "apis"
	fileGroup           = "zz_groupversion_info.go"
	suffixKind          = "_terraformed.go"
)

// Files returns the files of a version to read: the provider's configuration, and the Go files of
// its kinds.
func (r Repository) Files(ctx context.Context, version string) (map[string][]byte, error) {
	out, err := r.git(ctx, "archive", "--format=tar", version, "--",
		":(glob)"+dirConfig+"/**/*.go", ":(glob)"+dirKinds+"/**/"+fileGroup, ":(glob)"+dirKinds+"/**/*"+suffixKind)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for t := tar.NewReader(bytes.NewReader(out)); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the files of %s in %s: %w", version, r, err)
		}
		if h.Typeflag != tar.TypeReg || strings.HasSuffix(h.Name, "_test.go") {
			continue
		}
		if files[h.Name], err = io.ReadAll(t); err != nil {
			return nil, fmt.Errorf("cannot read %s of %s in %s: %w", h.Name, version, r, err)
		}
	}
}

func (r Repository) git(ctx context.Context, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", string(r)}, args...)...).Output()
	if failed := (&exec.ExitError{}); errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(failed.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot run git %s in %s: %w", args[0], r, err)
	}

	return out, nil
}

var (
	// groupRE matches the constant that upjet generates with the group of a package, and resourceRE
	// the method that returns the Terraform resource of a kind.
	groupRE    = regexp.MustCompile(`(?m)^\s*CRDGroup\s*=\s*"([^"]+)"$`)
	resourceRE = regexp.MustCompile(`(?m)^func \(\w+ \*(\w+)\) GetTerraformResourceType\(\) string \{\s*return "([^"]+)"\s*\}$`)
)

// kinds reads the kinds of a version from their generated Go files. It returns the Terraform
// resource of each, "" if there are several. A namespaced kind and the cluster-scoped one of the
// same name count as one: the groups of namespaced kinds are like ec2.aws.m.upbound.io.
func kinds(files map[string][]byte) (map[schema.GroupKind]string, error) {
	groups := map[string]string{}
	for name, content := range files {
		if found := groupRE.FindSubmatch(content); found != nil && path.Base(name) == fileGroup {
			groups[path.Dir(name)] = strings.Replace(string(found[1]), ".m.upbound.io", ".upbound.io", 1)
		}
	}
	all := map[schema.GroupKind]string{}
	for name, content := range files {
		if !strings.HasPrefix(name, dirKinds+"/") || path.Base(name) == fileGroup {
			continue
		}
		methods := resourceRE.FindAllStringSubmatch(string(content), -1)
		if len(methods) == 0 {
			return nil, fmt.Errorf("cannot find a kind in %s", name)
		}
		for _, found := range methods {
			gk, resource := schema.GroupKind{Group: groups[path.Dir(name)], Kind: found[1]}, found[2]
			if gk.Group == "" {
				return nil, fmt.Errorf("cannot find the group of the kinds in %s", path.Dir(name))
			}
			if other, is := all[gk]; is && other != resource {
				resource = ""
			}
			all[gk] = resource
		}
	}

	return all, nil
}
