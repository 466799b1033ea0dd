package build

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// gosdk has the functions that provider-kubernetes calls to log in to Nebius, a cloud that no test
// has. Not every module proxy serves the real module.
var gosdk = map[string]string{ //nolint:gochecknoglobals // It is constant.
	"go.mod": "module github.com/nebius/gosdk\n\ngo 1.24\n",
	"gosdk.go": `package gosdk

import (
	"context"
	"errors"

	"github.com/nebius/gosdk/auth"
)

type SDK struct{}

func New(context.Context, ...any) (*SDK, error) {
	return nil, errors.New("cannot log in to Nebius: this program was built without it")
}

func (*SDK) BearerToken(context.Context) (auth.BearerToken, error) { return auth.BearerToken{}, nil }

func WithCredentials(any) any { return nil }

func ServiceAccountReader(any) any { return nil }
`,
	"auth/auth.go": `package auth

type BearerToken struct{ Token string }

func NewPrivateKeyParser([]byte, string, string) any { return nil }
`,
}

// stubReplaces returns the lines of the wrapper module that make the go command use the stubs.
func stubReplaces(stubs map[string]map[string]string) []string {
	var lines []string
	for _, module := range slices.Sorted(maps.Keys(stubs)) {
		lines = append(lines, fmt.Sprintf("%s => ./%s", module, stubDir(module)))
	}

	return lines
}

// writeStubs writes the stubs of a recipe into its wrapper module's directory.
func writeStubs(dir string, stubs map[string]map[string]string) error {
	for module, files := range stubs {
		for name, content := range files {
			file := filepath.Join(dir, stubDir(module), name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return fmt.Errorf("cannot make a directory for the stub of %s: %w", module, err)
			}
			if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
				return fmt.Errorf("cannot write the stub of %s: %w", module, err)
			}
		}
	}

	return nil
}

func stubDir(module string) string { return path.Join("stub", module) }
