package hooks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWithRights(t *testing.T) {
	forbidden := fmt.Errorf("cannot list: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", nil))
	cases := map[string]struct {
		reason, command string
		err             error
		// want is the end of the message.
		want string
	}{
		"Release":  {reason: "The message names the file of the command.", command: "release", err: forbidden, want: "; example/rbac/release.yaml has the rights for release"},
		"Settings": {reason: "Each command has a file.", command: "settings", err: forbidden, want: "; example/rbac/settings.yaml has the rights for settings"},
		"Hold":     {reason: "No role may create the key.", command: "hold", err: forbidden, want: "; example/rbac/hold.yaml has the rights for hold, once a backup has made the key that signs the holds"},
		"Another":  {reason: "Other errors stay as they are.", command: "release", err: errors.New("cannot find it"), want: "cannot find it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := failed(withRights(tc.command, tc.err))
			if codeOf(got) != ExitFailed || !strings.HasSuffix(messageOf(got).Text, tc.want) {
				t.Errorf("%s\ngot exit %d and %q, want …%q", tc.reason, codeOf(got), messageOf(got), tc.want)
			}
		})
	}
	if withRights("release", nil) != nil {
		t.Error("no error must stay none")
	}
}

// Each command that uses a cluster has an example of the rights that it needs.
func TestRightsExist(t *testing.T) {
	for _, c := range newRoot(newOptions(Program{})).Commands() {
		file := filepath.Join("..", "example", "rbac", c.Name()+".yaml")
		_, err := os.Stat(file)
		if there := err == nil; there == slices.Contains([]string{"explain", "install", "version"}, c.Name()) {
			t.Errorf("%s: %s exists: %t", c.Name(), file, there)
		}
	}
}
