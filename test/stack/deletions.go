package stack

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// pluginAgent is the user agent of the plugin, in Velero's process and as a command.
const pluginAgent = "velero-plugin-for-crossplane"

// checkDeletions fails if the audit log has a request of the plugin that deletes an object or takes
// its finalizers off.
func (c *Cluster) checkDeletions() error {
	log, err := os.Open(c.auditFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // The API server was never started.
	}
	if err != nil {
		return fmt.Errorf("cannot open the audit log of cluster %s: %w", c.options.Name, err)
	}
	defer log.Close() //nolint:errcheck // It was only read.
	if err := deletionsIn(log); err != nil {
		return fmt.Errorf("cluster %s: %w", c.options.Name, err)
	}

	return nil
}

// deletionsIn returns an error that names the requests of the plugin in an audit log that delete an
// object or take its finalizers off.
func deletionsIn(log io.Reader) error {
	var found []error
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // A server that was killed may have left a part of a line.
			return errors.Join(found...)
		}
		if err != nil {
			return fmt.Errorf("cannot read the audit log: %w", err)
		}
		if !strings.Contains(string(line), pluginAgent) {
			continue
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("cannot parse the audit log: %w", err)
		}
		deletes := e.Verb == "delete" || e.Verb == "deletecollection"
		if e.UserAgent == pluginAgent && (deletes || takesFinalizersOff(e.RequestObject)) {
			found = append(found, fmt.Errorf("the plugin has asked to %s %s %s", e.Verb, e.RequestURI, e.RequestObject))
		}
	}
}

// A patchStep is a step of a JSON patch.
type patchStep struct {
	Path string `json:"path"`
}

// takesFinalizersOff reports whether a patch may do that: a merge patch that leaves none, or a JSON
// patch that names them.
func takesFinalizersOff(patch []byte) bool {
	var steps []patchStep
	if json.Unmarshal(patch, &steps) == nil {
		return slices.ContainsFunc(steps, func(s patchStep) bool { return strings.HasPrefix(s.Path, "/metadata/finalizers") })
	}
	var merge struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if json.Unmarshal(patch, &merge) != nil {
		return false // It is no patch of an object's metadata.
	}
	left, names := merge.Metadata["finalizers"]

	return names && (string(left) == "null" || string(left) == "[]")
}
