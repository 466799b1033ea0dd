// Package reason explains the stable codes that reports print: what each means, why it happens and
// what to do. reasons.yaml is the only place that says so. It imports nothing of this project;
// hooks and the documentation read it. Begin with All.
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
	Code string `json:"code"`
	// ReportedBy names the commands that report it, and as what if it is not a problem.
	ReportedBy string `json:"reportedBy"`
	Meaning    string `json:"meaning"`
	Cause      string `json:"cause"`
	Cure       string `json:"cure"`
}

//go:embed reasons.yaml
var file []byte

// All returns all reasons, the gravest first. The caller must not change them.
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
		known := strings.ToLower(r.Code)
		if known == given {
			return r, nil, true
		}
		if strings.Contains(known, given) || strings.HasPrefix(known, given[:min(len(given), prefix)]) {
			similar = append(similar, r.Code)
		}
	}

	return Reason{}, similar, false
}
