package printer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func TestEscapedMarkdown(t *testing.T) {
	cases := map[string]struct{ reason, of, want string }{
		"Plain":   {"A sentence stays as it is.", "it is held, so nothing reconciles it", "it is held, so nothing reconciles it"},
		"Element": {"A tenant's text must not become an element.", "<img src=x>", `\<img src=x\>`},
		"Link":    {"A tenant's text must not become a link.", "[a](https://b)", `\[a\](https:<!-- -->//b)`},
		"Mention": {"A tenant's text must not call people.", "ask @all", "ask <!-- -->@all"},
		"Lines":   {"A tenant's text must not begin a block.", "a\n# b\n\n- c", `a \# b - c`},
		"Escape":  {"A tenant's text must not undo the escape.", `\*`, `\\\*`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, escapedMarkdown(tc.of)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestInCode(t *testing.T) {
	cases := map[string]struct{ reason, of, want string }{
		"Plain":     {"A name needs one backtick.", "Bucket a/b", "`Bucket a/b`"},
		"Backticks": {"A name must not end its span.", "a`b``c", "```a`b``c```"},
		"Ends":      {"Spaces separate a backtick from the fence.", "`", "`` ` ``"},
		"Lines":     {"A span has one line.", "a\n\nb", "`a b`"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, inCode(tc.of)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A comment of a code host has a maximal size.
func TestMarkdownIsShort(t *testing.T) {
	r := againstReport()
	for n := range 2000 {
		name := strings.Repeat("n", 200) + number(n)
		r.Trees = append(r.Trees, &report.Node{Ref: xp.Ref{Kind: "XOrder", Name: name}})
		r.Problems = append(r.Problems, report.Problem{Code: reason.NotSynced, Object: xp.Ref{Kind: "XOrder", Name: name}, Reason: "why " + name, Next: "look"})
	}
	got := printed(t, r, Markdown, Options{})
	if len(got) > 65_536 {
		t.Errorf("it has %d bytes", len(got))
	}
	for _, want := range []string{"more: see `-o json`", "too many to show here"} {
		if !strings.Contains(got, want) {
			t.Errorf("it must say that it leaves something out (%s):\n%.500s", want, got)
		}
	}
}
