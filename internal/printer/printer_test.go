package printer

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"
	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

var update = flag.Bool("update", false, "write what is printed to testdata")

func printed(t *testing.T, r *report.Report, f Format, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Print(&b, r, f, o); err != nil {
		t.Fatalf("Print as %s: %v", f, err)
	}

	return b.String()
}

// TestGolden compares the output with reviewed files. After a change run go test ./internal/printer
// -update and review the difference.
func TestGolden(t *testing.T) {
	for name, r := range samples() {
		outputs := map[string]string{
			"80.txt": printed(t, r, Table, Options{Width: 80}), "200.txt": printed(t, r, Table, Options{Width: 200}), "piped.txt": printed(t, r, Table, Options{}),
		}
		if !strings.HasPrefix(name, "code-") {
			outputs["wide.txt"] = printed(t, r, Wide, Options{Width: 200})
		}
		for suffix, got := range outputs {
			file := filepath.Join("testdata", name+"."+suffix)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file) //nolint:gosec // The file is in the repository.
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", file, diff)
			}
		}
	}
}

var isCommand = regexp.MustCompile(`^    (kubectl|velero|` + regexp.QuoteMeta(xp.Program) + `) `)

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	for name, r := range samples() {
		for _, width := range []int{80, 120, 200} {
			for line := range strings.Lines(printed(t, r, Table, Options{Width: width})) {
				if isCommand.MatchString(line) {
					continue // It is a command to copy.
				}
				if got := text.StringWidthWithoutEscSequences(strings.TrimSuffix(line, "\n")); got > width {
					t.Errorf("%s at %d: a line has %d columns: %s", name, width, got, line)
				}
			}
		}
	}
}

func TestNothingIsCutWithoutTerminal(t *testing.T) {
	for name, r := range samples() {
		if got := printed(t, r, Table, Options{}); strings.Contains(got, "…") {
			t.Errorf("%s: output for a program must not be cut:\n%s", name, got)
		}
	}
}

func TestColour(t *testing.T) {
	text.EnableColors()
	for name, r := range samples() {
		for _, f := range []Format{Table, Wide} {
			without, with := printed(t, r, f, Options{Width: 80}), printed(t, r, f, Options{Width: 80, Colour: true})
			if strings.Contains(without, "\x1b") {
				t.Errorf("%s: without colours the output must have no escape sequence:\n%q", name, without)
			}
			if !strings.Contains(with, "\x1b") {
				t.Errorf("%s: the output must have colours:\n%q", name, with)
			}
			if diff := cmp.Diff(without, text.StripEscape(with)); diff != "" {
				t.Errorf("%s: colours must not change the text: -without, +with:\n%s", name, diff)
			}
		}
	}
}

func TestJSONIsTheData(t *testing.T) {
	for name, r := range samples() {
		if name == "hostile" { // Its YAML is a different text with the same data.
			r.Problems[0].Next = "a\u202eb\U000e0001\x7f\u2028\x1b\n: '\"#" // JSON cannot contain invalid UTF-8.
			r.Source = r.Problems[0].Next
		}
		var fromJSON, fromYAML report.Report
		if name != "hostile" {
			b, err := json.Marshal(r)
			if err == nil {
				b, err = yaml.JSONToYAML(b)
			}
			if diff := cmp.Diff(string(b), printed(t, r, YAML, Options{})); err != nil || diff != "" {
				t.Errorf("%s: the whole report and its parts must print the same: %v, -want, +got:\n%s", name, err, diff)
			}
		}
		if err := json.Unmarshal([]byte(printed(t, r, JSON, Options{})), &fromJSON); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(printed(t, r, YAML, Options{})), &fromYAML); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, &fromJSON); diff != "" {
			t.Errorf("%s: -want, +from JSON:\n%s", name, diff)
		}
		if diff := cmp.Diff(r, &fromYAML); diff != "" {
			t.Errorf("%s: -want, +from YAML:\n%s", name, diff)
		}
	}
}

// TestHostileText prints hostile text from an object in each format.
func TestHostileText(t *testing.T) {
	for _, f := range Formats() {
		got := printed(t, hostileReport(), Format(f), Options{Width: 80})
		for _, c := range got {
			if c != '\n' && c != '\t' && !unicode.IsPrint(c) {
				t.Errorf("%s: unprintable character %U:\n%q", f, c, got)
			}
		}
		if f == string(HTML) && (strings.Contains(got, "<script>alert") || strings.Contains(got, "<img")) {
			t.Errorf("hostile text became an element of the page:\n%s", got)
		}
	}
}

func FuzzPrint(f *testing.F) {
	for n := range Formats() {
		f.Add("orders", "nothing", uint16(80), 3, uint8(n))
		f.Add("\x1b[31m\u202e\n\xff", "]]>", uint16(1), 100, uint8(n))
	}
	f.Fuzz(func(t *testing.T, name, message string, width uint16, children int, kind uint8) {
		format := Format(Formats()[int(kind)%len(Formats())])
		r := againstReport()
		n := r.Trees[0]
		for range children % 20 {
			n.Name, n.State, n.Role, n.ExternalName = name, report.State(message), report.Role(message), message
			n.Ready, n.Synced = &report.Condition{Status: name, Message: message}, nil
			n.Hold = &report.Hold{Restore: name, Waiting: []string{message}}
			n.Children = append(n.Children, &report.Node{Ref: n.Ref})
			n = n.Children[0]
		}
		r.Source = message
		r.Problems = append(r.Problems, report.Problem{Code: reason.Code(message), Object: n.Ref, Reason: message, Next: name})
		if format == JSON && utf8.ValidString(name) && utf8.ValidString(message) {
			var back report.Report
			text := printed(t, r, JSON, Options{})
			if err := json.Unmarshal([]byte(text), &back); err != nil {
				t.Fatal(err)
			}
			// For such deep trees the time of cmp doubles with each level, so compare the text.
			if diff := cmp.Diff(text, printed(t, &back, JSON, Options{})); diff != "" {
				t.Errorf("the report must survive JSON: -want, +got:\n%s", diff)
			}
		}
		var b bytes.Buffer
		if err := Print(&b, r, format, Options{Width: int(width), Colour: kind >= 1<<7}); err != nil {
			t.Errorf("Print as %s: %v", format, err)
		}
	})
}

func BenchmarkTable(b *testing.B) {
	var trees []*report.Node
	for n := range 1000 {
		tree := order(fmt.Sprintf("tenant-%d", n), buckets("tenant", 10)...)
		tree.Paused = true
		trees = append(trees, tree)
	}
	r := validation(trees)
	for b.Loop() {
		if err := Print(&bytes.Buffer{}, r, Wide, Options{Width: 200}); err != nil {
			b.Fatal(err)
		}
	}
}

// A user and a program look a problem up by its code, wherever they read of it.
func TestEveryFormatHasTheCodes(t *testing.T) {
	in := xrRef("in")
	tree := healthyNode(in, report.RoleComposite)
	tree.Problems = []reason.Code{reason.NotReady}
	warning := problem(reason.NotReady, in, "it is not Ready", "wait")
	warning.Severity = report.Warning
	r := validation([]*report.Node{tree}, problem(reason.Dangling, xrRef("out"), "it does not exist", "restore it"), warning)
	for _, f := range Formats() {
		if f == string(Name) {
			continue // It has names only.
		}
		got := printed(t, r, Format(f), Options{})
		for _, code := range []reason.Code{reason.NotReady, reason.Dangling} {
			if !strings.Contains(got, string(code)) {
				t.Errorf("%s lacks the code %s:\n%s", f, code, got)
			}
		}
	}
}
