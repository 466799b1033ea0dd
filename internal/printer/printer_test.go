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
	"time"
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
			"wide.txt": printed(t, r, Wide, Options{Width: 200}),
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

func TestNames(t *testing.T) {
	child := &report.Node{Ref: xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "a", Name: "s"}}
	root := &report.Node{Ref: xp.Ref{APIVersion: "example.org/v1", Kind: "Order", Namespace: "a", Name: "o"}, Children: []*report.Node{child, child}}
	got := printed(t, &report.Report{Trees: []*report.Node{root}}, Name, Options{})
	if diff := cmp.Diff("order.example.org/o\nsecret/s\n", got); diff != "" {
		t.Errorf("each object has one line: -want, +got:\n%s", diff)
	}
	held := releaseOf([]report.Release{hold(root.Ref, report.Released), hold(child.Ref, report.StillHeld)})
	if diff := cmp.Diff("order.example.org/o\nsecret/s\n", printed(t, held, Name, Options{})); diff != "" {
		t.Errorf("the objects of hold and release are in no tree: -want, +got:\n%s", diff)
	}
}

// A next step is printed with the problem, and not again in the tree.
func TestStatusRefersToTheProblem(t *testing.T) {
	const step = "look for it in the cloud"
	bucket := xp.Ref{APIVersion: "cloud.example.org/v1", Kind: "Bucket", Name: "b"}
	for why, times := range map[string]int{
		"it was being created: " + step + " [CreatePending]": 1, "it was being created: " + step + " [PossibleDuplicate]": 2,
		"it is new [AwaitingRestore]; " + step + " [CreatePending]": 2,
	} {
		n := &report.Node{Ref: bucket, Role: report.RoleManaged, State: report.Adopted, Restore: &report.Outcome{Action: report.Keep, Reason: why}}
		r := &report.Report{Kind: report.KindInspection}
		r.Assemble([]*report.Node{n}, []report.Problem{problem(reason.CreatePending, bucket, "it was being created", step)})
		if got := printed(t, r, Table, Options{}); strings.Count(got, step) != times {
			t.Errorf("%q: want the step %d times:\n%s", why, times, got)
		}
	}
}

// hostileTexts are texts in objects that try to be interpreted as code or markup.
func hostileTexts() []string {
	return []string{
		"\x1b]0;pwned\x07", "a\nb", "$(touch pwned)", "-rf", "--all", "'; rm -rf ~'", "a\u202eb", `"];pwned[label="`, `\"`, `\`, "<b>pwned</b>", "]]><pwned/>", "<!--", "&lt;",
		"</script><script>pwned()</script>", `" onmouseover="pwned()`, "javascript:pwned()", "{{.Policy}}", "\u2028", "\xff", "\x00",
	}
}

// reportWithText returns a report with a text in each field that can have one.
func reportWithText(s string) *report.Report {
	r := xp.Ref{APIVersion: s, Kind: s, Namespace: s, Name: s}
	condition := &report.Condition{Status: s, Reason: s, Message: s}
	n := &report.Node{
		Ref: r, Role: report.Role(s), State: report.State(s), ExternalName: s, Composition: s, Revision: s, Synced: condition, Ready: condition,
		Hold: &report.Hold{Restore: s, Waiting: []string{s}, Since: before(1)}, Restore: &report.Outcome{Action: report.Action(s), Reason: s}, Problems: []reason.Code{reason.Code(s)},
	}
	root := *n
	root.Children = []*report.Node{n}
	v := validation([]*report.Node{&root}, report.Problem{Code: reason.Code(s), Severity: report.Severity(s), Object: r, Others: []xp.Ref{r}, Reason: s, Next: s},
		problem(reason.Stuck, xp.Ref{Kind: "K", Name: s + "x"}, s, s))
	v.Source, v.Kind = s, report.KindInspection
	v.Restores = []report.Restore{{Name: s, Phase: s, Backup: s, Started: before(1)}}
	v.Order = []report.Step{{Resource: s, Why: s}}
	v.Versions = []report.Version{{Name: s, Version: s}}
	v.DryRun = &report.DryRunResult{Cluster: s, Counts: map[report.Action]int{report.Create: 1}, Items: []report.ItemResult{{Item: r, Resource: s, Namespace: s, Outcome: *n.Restore, For: &r}}}
	v.Releases = []report.Release{{Object: r, Restore: s, Phase: s, Result: report.Result(s), Steps: []string{s}, Settings: []string{s}, Risks: []string{s}, Reason: s, Next: s}}

	return v
}

// TestHostileTexts checks that hostile texts stay text in each format.
func TestHostileTexts(t *testing.T) {
	for _, s := range hostileTexts() {
		r := reportWithText(s)
		page := printed(t, r, HTML, Options{})
		for _, element := range []string{"<b>", "<pwned", "<script>pwned", "<!--", `" onmouseover="`, `="javascript`} {
			if strings.Contains(page, element) {
				t.Errorf("%q: the page contains %q", s, element)
			}
		}
		for _, f := range Formats() {
			for _, width := range []int{0, 80, 200} {
				got := printed(t, r, Format(f), Options{Width: width})
				if !xp.IsPrintable(strings.NewReplacer("\n", "", "\t", "").Replace(got)) {
					t.Errorf("%q: %s has unprintable characters: %q", s, f, got)
				}
			}
		}
	}
}

// longList is a report of an XR that lists many missing objects of different kinds.
func longList(long int) *report.Report {
	tree := order("orders")
	xr := tree.Children[0]
	var problems []report.Problem
	for n := range long {
		r := xp.Ref{APIVersion: "made.up/v1", Kind: fmt.Sprint("Kind", n), Name: "n"}
		xr.Children = append(xr.Children, &report.Node{Ref: r, Role: report.RoleOther, State: report.Missing, Problems: []reason.Code{reason.Dangling}})
		problems = append(problems, problem(reason.Dangling, r, "XOrder orders lists it, and its kind is not served", "install the provider of "+r.Kind))
	}
	other := problem(reason.Stuck, xrRef("other"), "nothing has reconciled it", "see whether Crossplane runs")

	return validation([]*report.Node{tree, healthyNode(xrRef("other"), report.RoleComposite)}, append(problems, other)...)
}

// TestLongListsAreBounded checks that output for users is bounded and still shows other problems,
// whatever an XR lists.
func TestLongListsAreBounded(t *testing.T) {
	const long = 15_000
	r := longList(long)
	for _, f := range []Format{Table, Wide, HTML} {
		for _, width := range []int{0, 80, 200} {
			got := printed(t, r, f, Options{Width: width})
			if lines := strings.Count(got, "\n"); lines > 5000 {
				t.Errorf("%s at %d: got %d lines", f, width, lines)
			}
			more := 14900
			if f != Table {
				more = 14000
			}
			for _, want := range []string{fmt.Sprintf("and %d more, which -o json has", more), "nothing has reconciled it", "Kind99", "-o json has each"} {
				if f == Wide && width == 80 && want[0] == 'a' || f != HTML && width == 200 && want[0] == '-' {
					continue // Columns are too narrow for it.
				}
				if !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
					t.Errorf("%s at %d: the output lacks %q", f, width, want)
				}
			}
		}
	}
	if got := printed(t, r, JSON, Options{}); strings.Count(got, `"Kind14999"`) != 2 {
		t.Error("JSON must contain all data")
	}
}

// TestLongListsAreFast prints very many trees with problems. The lookup of a tree's problems
// must not scan all of them.
func TestLongListsAreFast(t *testing.T) {
	const long = 20_000
	var trees []*report.Node
	var problems []report.Problem
	for n := range long {
		r := xrRef(fmt.Sprint("x", n))
		tree := healthyNode(r, report.RoleComposite)
		tree.Problems = []reason.Code{reason.NotReady}
		trees, problems = append(trees, tree), append(problems, problem(reason.NotReady, r, "it is not Ready", "wait"))
		problems[n].Severity = report.Warning
	}
	r := validation(trees, problems...)
	began := time.Now()
	printed(t, r, Table, Options{Width: 80})
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the table took %s", took)
	}
}
