package reason

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/problems.md")

const page = "../../docs/problems.md"

// TestPage compares the table of the page with the reasons: go test ./internal/reason -update
// writes it.
func TestPage(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), "| code |")
	if !ok {
		t.Fatalf("%s has no table", page)
	}
	end := strings.Index(rest, "\n\n")
	if end < 0 {
		end = len(strings.TrimRight(rest, "\n"))
	}
	want := before + strings.TrimRight(Table(), "\n") + rest[end:]
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil { //nolint:gosec // It is ours.
			t.Fatal(err)
		}

		return
	}
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("The page is generated from reasons.yaml; run go test ./internal/reason -update: -want, +got:\n%s", diff)
	}
}

func TestFind(t *testing.T) {
	type want struct {
		Code    string
		Similar []string
		OK      bool
	}
	cases := map[string]struct {
		reason string
		code   string
		want   want
	}{
		"Known": {reason: "Find must accept a code in the form that reports print.", code: "GuardUp", want: want{Code: "GuardUp", OK: true}},
		"Lower": {reason: "A user can type a code in lower case.", code: "guardup", want: want{Code: "GuardUp", OK: true}},
		"Part": {reason: "A part of a code must find all codes with it.", code: "Missing", want: want{Similar: []string{
			"IdentityMissing", "RevisionMissing", "DefinitionMissing", "SecretMissing", "InputMissing", "EnvironmentMissing",
		}}},
		"Begins":  {reason: "The first letters of a code must find it.", code: "dangle", want: want{Similar: []string{"Dangling"}}},
		"Unknown": {reason: "A word without a similar code must find none.", code: "Xylophone"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, similar, ok := Find(tc.code)
			if diff := cmp.Diff(tc.want, want{Code: r.Code, Similar: similar, OK: ok}); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAllAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range All() {
		if seen[r.Code] {
			t.Errorf("the code %s appears twice", r.Code)
		}
		seen[r.Code] = true
		for part, text := range map[string]string{"reportedBy": r.ReportedBy, "meaning": r.Meaning, "cause": r.Cause, "cure": r.Cure} {
			if strings.TrimSpace(text) == "" || strings.Contains(text, "\n") {
				t.Errorf("%s must have one line of %s", r.Code, part)
			}
		}
	}
}
