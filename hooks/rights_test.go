package hooks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
		code            int
		// want is the end of the message.
		want string
	}{
		"Release":    {reason: "The message names the file of the command.", command: "release", err: failed(forbidden), code: ExitFailed, want: "; example/rbac/release.yaml has the rights for release"},
		"Settings":   {reason: "Each command has a file.", command: "settings", err: failed(forbidden), code: ExitFailed, want: "; example/rbac/settings.yaml has the rights for settings"},
		"Hold":       {reason: "No role may create the key.", command: "hold", err: failed(forbidden), code: ExitFailed, want: "; example/rbac/hold.yaml has the rights for hold, once a backup has made the key that signs the holds"},
		"ExitCode":   {reason: "The exit code stays.", command: "validate", err: &exit{code: ExitTimeout, err: forbidden}, code: ExitTimeout, want: "; example/rbac/validate.yaml has the rights for validate"},
		"Completion": {reason: "A command without a file gets no advice.", command: "explain", err: failed(forbidden), code: ExitFailed, want: forbidden.Error()},
		"Another":    {reason: "Other errors stay as they are.", command: "release", err: failed(errors.New("cannot find it")), code: ExitFailed, want: "cannot find it"},
		"Usage":      {reason: "A usage error stays one.", command: "release", err: errors.New("cannot ask"), code: ExitUsage, want: "cannot ask"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := withRights(tc.command, tc.err)
			if codeOf(got) != tc.code || !strings.HasSuffix(messageOf(got).Text, tc.want) {
				t.Errorf("%s\ngot exit %d and %q, want %d and …%q", tc.reason, codeOf(got), messageOf(got), tc.code, tc.want)
			}
		})
	}
	if withRights("release", nil) != nil {
		t.Error("no error must stay none")
	}
}

// Each command that uses a cluster has an example of the rights that it needs.
func TestRightsExist(t *testing.T) {
	for _, c := range newRoot(newOptions(Streams{})).Commands() {
		file := filepath.Join("..", "example", "rbac", c.Name()+".yaml")
		_, err := os.Stat(file)
		if there := err == nil; there != (rights(c.Name()) != "") {
			t.Errorf("%s: %s exists: %t, and the command names %q", c.Name(), file, there, rights(c.Name()))
		}
	}
}
