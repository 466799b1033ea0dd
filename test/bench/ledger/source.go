package ledger

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// SourceOf returns a hash of the files of a checkout that the plugin is built from. The program
// itself has the commit in it, which changes without them.
func SourceOf(root string) (string, error) {
	sum := sha256.New()
	files := os.DirFS(root)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(name, ".") || name == "test" || name == "bin") {
				return fs.SkipDir
			}

			return nil
		}
		if strings.HasSuffix(name, "_test.go") || filepath.Ext(name) != ".go" && name != "go.mod" && name != "go.sum" {
			return nil
		}
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", name, err)
		}
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", name, len(b), b) // A hash never fails.

		return nil
	})
	if err != nil {
		return "", fmt.Errorf("cannot read the plugin's source: %w", err)
	}

	return fmt.Sprintf("plugin %x", sum.Sum(nil)[:8]), nil
}

// CommitOf returns the last commit that has changed a file that the plugin is built from, with a
// note if such files have uncommitted changes.
func CommitOf(ctx context.Context, root string) (string, error) {
	git := func(args ...string) (string, error) {
		args = append(append([]string{"-C", root}, args...), "--", "*.go", "go.mod", "go.sum", ":!*_test.go", ":!test")
		out, err := exec.CommandContext(ctx, "git", args...).Output()
		if err != nil {
			return "", fmt.Errorf("cannot find the commit of the plugin: %w", err)
		}

		return strings.TrimSpace(string(out)), nil
	}
	commit, err := git("log", "-1", "--format=%h")
	if err != nil {
		return "", err
	}
	changes, err := git("status", "--porcelain")
	if changes != "" {
		commit += " with changes"
	}

	return commit, err
}
