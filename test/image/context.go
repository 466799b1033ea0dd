package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// A buildContext has the files of a folder that its .dockerignore does not exclude.
type buildContext struct {
	root  string
	files []string // With slashes, relative to the root.
}

func readContext(root string) (buildContext, error) {
	c := buildContext{root: root}
	f, err := os.Open(filepath.Join(root, ".dockerignore"))
	if err != nil {
		return c, err
	}
	defer func() { _ = f.Close() }()
	patterns, err := ignorefile.ReadAll(f)
	if err != nil {
		return c, fmt.Errorf("cannot read the .dockerignore: %w", err)
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		return c, fmt.Errorf("cannot understand the .dockerignore: %w", err)
	}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if skip, err := ignored.MatchesOrParentMatches(rel); skip || err != nil {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("cannot copy %s: it is no regular file, and nothing else is known here", rel)
		}
		c.files = append(c.files, filepath.ToSlash(rel))

		return nil
	})

	return c, err
}

// copyTo copies a file, or what is in a folder, of the context.
func (c buildContext) copyTo(source, root, dest string) error {
	source = path.Clean(strings.TrimPrefix(source, "/"))
	found := false
	for _, file := range c.files {
		to, ok := dest, file == source
		switch {
		case ok && strings.HasSuffix(dest, "/"):
			to = path.Join(dest, path.Base(file))
		case source == ".":
			to, ok = path.Join(dest, file), true
		case strings.HasPrefix(file, source+"/"):
			to, ok = path.Join(dest, strings.TrimPrefix(file, source+"/")), true
		}
		if !ok {
			continue
		}
		found = true
		if err := copyFile(filepath.Join(c.root, filepath.FromSlash(file)), inside(root, to)); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("cannot copy %s: the context has none, or the .dockerignore leaves it out", source)
	}

	return nil
}

// inside returns where an absolute path of an image's file system is on this machine.
func inside(root, path string) string {
	return filepath.Join(root, filepath.FromSlash(filepath.Clean("/"+path)))
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}

	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, b, info.Mode().Perm()))
}
