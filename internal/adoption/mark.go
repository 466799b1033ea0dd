package adoption

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// readMark reads what a mark says. What it calls the Restore that put it on is looked up, and is part of commands that people copy: it must be what an API
// server can have, or be left out.
func readMark(mark string, into *Hold) error {
	if err := json.Unmarshal([]byte(mark), into); err != nil {
		return err //nolint:wrapcheck // HoldOf says of what.
	}
	if into.Restore != "" && !isRestore(into.Restore) {
		return fmt.Errorf("its Restore %q is no namespace and name of one, so this plugin has not written it", into.Restore)
	}

	return nil
}

// isRestore tells whether a string is the namespace/name of an object as Velero's Restores are called.
func isRestore(s string) bool {
	namespace, name, ok := strings.Cut(s, "/")

	return ok && len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(name)) == 0
}
