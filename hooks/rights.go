package hooks

import (
	"errors"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// rights returns the file of example/rbac with the rights for a command; "" if it needs none.
func rights(command string) string {
	switch command {
	case "hold", "inspect", "release", "settings", "validate", "wait":
		return "example/rbac/" + command + ".yaml"
	default:
		return ""
	}
}

// withRights adds to an error about a missing right which file has the rights for the command.
func withRights(command string, err error) error {
	file := rights(command)
	if err == nil || file == "" || messageOf(err).Code != reason.RightMissing {
		return err
	}
	next := file + " has the rights for " + command
	if command == "hold" {
		next += ", once a backup has made the key that signs the holds"
	}
	var e *exit
	if !errors.As(err, &e) {
		return reason.RightMissing.Errorf("%w; %s", err, next)
	}
	named := *e
	named.err = reason.RightMissing.Errorf("%w; %s", e.err, next)

	return &named
}
