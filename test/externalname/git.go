// Package externalname reads the sources of upjet providers, finds the kinds whose external-name
// follows from status.atProvider.id, and writes the plugin's table of them. It needs no network:
// the sources are local git repositories.
package externalname

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Repository is the path of a git repository or of its checkout.
type Repository string

// A File is a file in a version of a repository. Files with the same ID have the same content.
type File struct{ Path, ID string }

// release matches the versions to read: all since v1.0.0 without pre-releases.
var release = regexp.MustCompile(`^v([1-9]\d*)\.(\d+)\.(\d+)$`)

// Versions returns the tagged versions to read, the oldest first.
func (r Repository) Versions(ctx context.Context) ([]string, error) {
	out, err := r.git(ctx, nil, "tag", "--list", "v*")
	if err != nil {
		return nil, err
	}
	versions := slices.DeleteFunc(strings.Fields(string(out)), func(tag string) bool { return !release.MatchString(tag) })
	if len(versions) == 0 {
		return nil, fmt.Errorf("cannot find a version in %s: it has no tag such as v1.2.0", r)
	}
	slices.SortFunc(versions, func(a, b string) int {
		x, y := release.FindStringSubmatch(a), release.FindStringSubmatch(b)

		return cmp.Or(cmp.Compare(number(x[1]), number(y[1])), cmp.Compare(number(x[2]), number(y[2])), cmp.Compare(number(x[3]), number(y[3])))
	})

	return versions, nil
}

func number(s string) int {
	n, _ := strconv.Atoi(s) // It is of digits.

	return n
}

// Commit returns the commit of a version.
func (r Repository) Commit(ctx context.Context, version string) (string, error) {
	out, err := r.git(ctx, nil, "rev-parse", "--verify", "--short=12", version+"^{commit}")

	return strings.TrimSpace(string(out)), err
}

// Files returns the files of a version to read: the provider's configuration, and the Go files of
// its kinds.
func (r Repository) Files(ctx context.Context, version string) ([]File, error) {
	out, err := r.git(ctx, nil, "ls-tree", "-r", "-z", version, "--", dirConfig, dirKinds)
	if err != nil {
		return nil, err
	}
	var files []File
	for entry := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		about, name, _ := strings.Cut(entry, "\t")
		fields := strings.Fields(about) // Its mode, type and ID.
		if len(fields) == 3 && isRead(name) {
			files = append(files, File{Path: name, ID: fields[2]})
		}
	}

	return files, nil
}

// Folders of a provider, and the files of its kinds.
const (
	dirConfig, dirKinds = "config", "apis"
	fileGroup           = "zz_groupversion_info.go"
	suffixKind          = "_terraformed.go"
)

func isRead(name string) bool {
	base := path.Base(name)
	if strings.HasPrefix(name, dirKinds+"/") {
		return base == fileGroup || strings.HasSuffix(base, suffixKind)
	}

	return strings.HasPrefix(name, dirConfig+"/") && strings.HasSuffix(base, ".go") && !strings.HasSuffix(base, "_test.go")
}

// Read calls do with the content of each file.
func (r Repository) Read(ctx context.Context, files []File, do func(f File, content []byte) error) error {
	if len(files) == 0 {
		return nil
	}
	ids := bytes.Buffer{}
	for _, f := range files {
		ids.WriteString(f.ID + "\n")
	}
	out, err := r.git(ctx, &ids, "cat-file", "--batch")
	if err != nil {
		return err
	}
	in := bufio.NewReader(bytes.NewReader(out))
	for _, f := range files {
		about, err := in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("cannot read %s of %s: %w", f.Path, r, err)
		}
		fields := strings.Fields(about) // Its ID, type and size.
		if len(fields) != 3 {
			return fmt.Errorf("cannot read %s of %s: %s", f.Path, r, strings.TrimSpace(about))
		}
		content := make([]byte, number(fields[2])+1) // A newline ends it.
		if _, err := io.ReadFull(in, content); err != nil {
			return fmt.Errorf("cannot read %s of %s: %w", f.Path, r, err)
		}
		if err := do(f, content[:len(content)-1]); err != nil {
			return err
		}
	}

	return nil
}

func (r Repository) git(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "git", append([]string{"-C", string(r)}, args...)...)
	c.Stdin = stdin
	out, err := c.Output()
	if failed := (&exec.ExitError{}); errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(failed.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot run git %s in %s: %w", args[0], r, err)
	}

	return out, nil
}
