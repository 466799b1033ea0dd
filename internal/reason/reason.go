// Package reason has the stable codes of everything that the plugin reports, waits for, refuses or
// warns of: what each means, why it happens and what to do. reasons.yaml is the only place that
// says so. It imports nothing of this project; each package that has a message for a user imports
// it. Begin with Message.
package reason

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

// A Reason is a code that never changes, and what a person needs to know of it. Its texts are
// Markdown.
type Reason struct {
	// Code is in CamelCase, like the reasons of conditions.
	Code Code `json:"code"`
	// Group is where a user sees it.
	Group Group `json:"group"`
	// ReportedBy names the commands that report it, and as what if it is not a problem. It is ""
	// outside the group Report.
	ReportedBy string `json:"reportedBy,omitempty"`
	Meaning    string `json:"meaning"`
	Cause      string `json:"cause"`
	Cure       string `json:"cure"`
}

// URL returns the address of the reason in the documentation.
func (r Reason) URL() string {
	return "https://github.com/crossplane-contrib/velero-plugin-for-crossplane/blob/main/docs/messages.md#" + string(r.Code)
}

// A Group is where a user sees a reason.
type Group string

// The groups, in the order of reasons.yaml. Each has a table in the documentation.
const (
	Report  Group = "report"
	Hold    Group = "hold"
	Restore Group = "restore"
	Backup  Group = "backup"
	Setting Group = "setting"
	Release Group = "release"
	Command Group = "command"
)

var places = map[Group]string{ //nolint:gochecknoglobals // It is constant.
	Report:  "problems of inspect and validate",
	Hold:    "description of a restore's operations, Events, the mark of a hold",
	Restore: "log of a restore, description of its operations",
	Backup:  "log of a backup",
	Setting: "log of a backup or restore, settings",
	Release: "output of release",
	Command: "output of all commands",
}

// Place returns where a user sees the reasons of the group.
func (g Group) Place() string { return places[g] }

//go:embed reasons.yaml
var file []byte

// All returns all reasons, in the order of reasons.yaml. The caller must not change them.
var All = sync.OnceValue(func() []Reason { //nolint:gochecknoglobals // The embedded file is read once.
	var all []Reason
	if err := yaml.UnmarshalStrict(file, &all); err != nil {
		panic(fmt.Sprintf("cannot read the embedded reasons: %v", err)) // The tests read the same file.
	}

	return all
})

// prefix is how many letters two codes must have in common to be similar.
const prefix = 4

// Find returns the reason with a code, whatever the case of its letters. If there is none, ok is
// false and similar has the codes that contain the given one, or begin with the same letters.
func Find(code string) (r Reason, similar []string, ok bool) {
	given := strings.ToLower(code)
	for _, r := range All() {
		known := strings.ToLower(string(r.Code))
		if known == given {
			return r, nil, true
		}
		if strings.Contains(known, given) || strings.HasPrefix(known, given[:min(len(given), prefix)]) {
			similar = append(similar, string(r.Code))
		}
	}

	return Reason{}, similar, false
}
