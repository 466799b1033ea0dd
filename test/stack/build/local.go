package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const rootModule = "module github.com/crossplane-contrib/velero-plugin-for-crossplane\n"

// own builds the programs of this repository, with the race detector if the calling program has it.
// Each checkout has its own directory in the cache.
func (b *builder) own(ctx context.Context, names []string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(root))
	dir, flags, cgo := filepath.Join(b.cache, "local", hex.EncodeToString(sum[:4])), []string{"build", "-trimpath", "-ldflags", "-s -w"}, "CGO_ENABLED=0"
	if Race {
		dir, flags, cgo = filepath.Join(dir, "race"), []string{"build", "-race"}, "CGO_ENABLED=1"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the directory of this repository's programs: %w", err)
	}
	for _, l := range locals() {
		if !slices.Contains(names, l.Name) {
			continue
		}
		a := Artifact{Path: filepath.Join(dir, l.Name)}
		if l.Assets != "" {
			a.Assets = filepath.Join(root, l.Assets)
		}
		stop := b.tick(l.Name + " of this repository")
		env := append(os.Environ(), cgo, "GOWORK=off")
		_, err := goCommand(ctx, filepath.Join(root, l.Dir), env, l.Name, slices.Concat(flags, []string{"-o", a.Path, l.Package})...)
		stop()
		if err != nil {
			return err
		}
		b.set[l.Name] = a
	}

	return nil
}

// Root returns the root directory of this repository. It searches from the working directory
// upwards and fails outside of a checkout.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the working directory: %w", err)
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), rootModule) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("cannot find the repository's root: no go.mod of velero-plugin-for-crossplane here or above")
		}
		dir = filepath.Dir(dir)
	}
}
