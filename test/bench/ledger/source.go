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

// SourceOf returns a sum of what the plugin is built from in a checkout: its program has the commit
// in it, which changes when nothing else does.
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
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", name, len(b), b) // A sum takes all.

		return nil
	})
	if err != nil {
		return "", fmt.Errorf("cannot read the plugin's source: %w", err)
	}

	return fmt.Sprintf("plugin %x", sum.Sum(nil)[:8]), nil
}

// CommitOf returns the last commit that has changed what the plugin is built from, and says if
// there are changes besides.
func CommitOf(ctx context.Context, root string) (string, error) {
	git := func(args ...string) (string, error) {
		args = append(append([]string{"-C", root}, args...), "--", "*.go", "go.mod", "go.sum", ":!*_test.go", ":!test")
		out, err := exec.CommandContext(ctx, "git", args...).Output()
		if err != nil {
			return "", fmt.Errorf("cannot tell the commit of the plugin: %w", err)
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
