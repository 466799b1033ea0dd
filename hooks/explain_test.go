package hooks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

func TestExplain(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		code   int
		out    []string
		err    string
	}{
		"Code": {
			reason: "The text of a code has its cause and cure; a page replaces each link.", args: []string{"GuardUp"},
			out: []string{"CODE  GuardUp", "SEEN  problems of inspect and validate: validate", "MEANING", "CAUSE", "CURE", "docs/gitops.md#the-guard"},
		},
		"Command": {reason: "A code outside of reports has a place, too.", args: []string{"NotQuiet"}, out: []string{"SEEN  output of all commands\n"}},
		"Unknown": {reason: "The error for an unknown code must suggest similar codes.", args: []string{"dangle"}, code: ExitUsage, err: "did you mean Dangling?"},
		"None":    {reason: "Without a similar code the error must point to the list.", args: []string{"xylophone"}, code: ExitUsage, err: "lists all"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := command(t, nil, append([]string{"explain"}, tc.args...)...)
			if r.code != tc.code || !strings.Contains(r.err, tc.err) {
				t.Errorf("%s: exit code %d: %s", tc.reason, r.code, r.err)
			}
			for _, text := range tc.out {
				if !strings.Contains(r.out, text) {
					t.Errorf("%s: the output lacks %q:\n%s", tc.reason, text, r.out)
				}
			}
			if strings.Contains(r.out, "](") || strings.Contains(r.out, "`") {
				t.Errorf("%s: a terminal must not show Markdown:\n%s", tc.reason, r.out)
			}
		})
	}
}

// TestExplainListsAll wants each code in the list under the heading of its group, in the order of
// reasons.yaml.
func TestExplainListsAll(t *testing.T) {
	var got, want []string
	for line := range strings.Lines(command(t, nil, "explain").out) {
		code, isCode := strings.CutPrefix(line, "  ")
		switch code, _, _ = strings.Cut(code, " "); {
		case isCode:
			got = append(got, code)
		case line != "\n":
			got = append(got, strings.TrimSpace(line))
		}
	}
	var group reason.Group
	for _, r := range reason.All() {
		if r.Group != group {
			group = r.Group
			want = append(want, strings.ToUpper(group.Place()))
		}
		want = append(want, string(r.Code))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
