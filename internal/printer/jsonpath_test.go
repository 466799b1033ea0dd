package printer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func TestParseFormat(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   string
		want   Format
		ok     bool
		err    string
	}{
		"Name":      {reason: "The case does not matter.", name: "JSON", want: JSON, ok: true},
		"Template":  {reason: "A template keeps its case.", name: "jsonpath={.summary.XRs}", want: "jsonpath={.summary.XRs}", ok: true},
		"Unknown":   {reason: "There is no such format.", name: "xml", want: "xml"},
		"Bare":      {reason: "There must be a template.", name: "jsonpath", want: "jsonpath"},
		"Malformed": {reason: "A template that can't be read is named.", name: "jsonpath={.a", want: "jsonpath={.a", err: "unclosed action"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok, err := ParseFormat(tc.name, Formats())
			if got != tc.want || ok != tc.ok || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s got %q, %v, %v", tc.reason, got, ok, err)
			}
		})
	}
}

func TestJSONPath(t *testing.T) {
	r := samples()["held"]
	cases := map[string]struct {
		reason   string
		template string
		want     string
	}{
		"Field":   {reason: "A field needs no braces.", template: ".kind", want: "Validation\n"},
		"Missing": {reason: "A field that is not there is empty.", template: "{.nothing.here}", want: "\n"},
		"Range":   {reason: "A range repeats.", template: `{range .trees[*]}{.kind}{"\n"}{end}`, want: strings.Repeat("OrderClaim\n", len(r.Trees))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := printed(t, r, Format(jsonPathPrefix+tc.template), Options{})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestJSONPathOfData(t *testing.T) {
	got, err := Encode(map[string]any{"list": []any{"a\x1b[31m"}}, "jsonpath={.list[0]}")
	if diff := cmp.Diff(reason.Clean("a\x1b[31m")+"\n", string(got)); diff != "" || err != nil || strings.Contains(string(got), "\x1b") {
		t.Errorf("a terminal must not interpret what is printed: %v -want, +got:\n%s", err, diff)
	}
}

func TestNames(t *testing.T) {
	child := &report.Node{Ref: xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "a", Name: "s"}}
	root := &report.Node{Ref: xp.Ref{APIVersion: "example.org/v1", Kind: "Order", Namespace: "a", Name: "o"}, Children: []*report.Node{child, child}}
	got := printed(t, &report.Report{Trees: []*report.Node{root}}, Name, Options{})
	if diff := cmp.Diff("order.example.org/o\nsecret/s\n", got); diff != "" {
		t.Errorf("each object has one line: -want, +got:\n%s", diff)
	}
}

func TestSort(t *testing.T) {
	node := func(name, external string) *report.Node {
		return &report.Node{Ref: xp.Ref{APIVersion: "v1", Kind: "K", Name: name}, ExternalName: external, Children: []*report.Node{{}}}
	}
	trees := []*report.Node{node("c", ""), node("b", "x"), node("a", "y")}
	for expression, want := range map[string]string{".name": "a b c", "{.externalName}": "b a c", "kind": "b a c"} {
		if err := Sort(trees, expression); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range trees {
			got = append(got, n.Name)
		}
		if expression != "kind" && strings.Join(got, " ") != want {
			t.Errorf("by %s: want %s, got %v", expression, want, got)
		}
		if len(trees[0].Children) != 1 {
			t.Error("the trees must be complete")
		}
	}
	if err := Sort(trees, "{.a"); err == nil {
		t.Error("a malformed expression is an error")
	}
	if compare(2.0, 10.0) >= 0 || compare("2", "10") <= 0 || compare(nil, 1.0) <= 0 {
		t.Error("numbers are compared by value, text as text, and what is missing comes last")
	}
}
