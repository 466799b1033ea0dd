package fields

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	root = "../.."
	file = "docs/dev/fields.md"
)

var update = flag.Bool("update", false, "write "+file)

// Reasons has what is to say of fields that no manifest sets. Each map is from titles of tables,
// separated by commas, to patterns for paths.
type reasons struct {
	// InGo names a file, and a text in it that sets the field.
	InGo map[string]map[string]string `json:"inGo"`
	// Reasons say why no case needs the field.
	Reasons map[string]map[string]string `json:"reasons"`
	// Gaps say what could go wrong that no case shows.
	Gaps map[string]map[string]string `json:"gaps"`
}

// A verdict is what a table says of fields that no manifest sets.
type verdict struct {
	title, pattern, text string
	match                *regexp.Regexp
	gap, set             bool
	fields               int
}

// TestPage expects that each field is set, explained or a known gap, and that the page says so.
// go test ./fields -update writes the page.
func TestPage(t *testing.T) {
	all, err := Tables(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if err := Mark(all, root); err != nil {
		t.Fatal(err)
	}
	verdicts := readReasons(t)
	of := map[string]map[string]*verdict{}
	for _, table := range all {
		of[table.Title] = map[string]*verdict{}
		for _, field := range slices.Sorted(maps.Keys(table.Fields)) {
			if len(table.Set[field]) > 0 {
				continue
			}
			for _, v := range verdicts {
				is := of[table.Title][field]
				if v.title == table.Title && v.match.MatchString(field) && (is == nil || len(v.pattern) > len(is.pattern)) {
					of[table.Title][field] = v
				}
			}
			if v := of[table.Title][field]; v != nil {
				v.fields++
			} else {
				t.Errorf("no manifest sets %s of %s, and reasons.yaml does not say why", field, table.Title)
			}
		}
	}
	for _, v := range verdicts {
		if v.fields == 0 {
			t.Errorf("reasons.yaml has %s of %s, but there is no such field that no manifest sets", v.pattern, v.title)
		}
	}

	want := page(all, of, verdicts)
	path := filepath.Join(root, file)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if diff := gocmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("%s is outdated; write it with: cd test && go test ./fields -update: %v\n-want, +got:\n%s", file, err, diff)
	}
}

func readReasons(t *testing.T) []*verdict {
	t.Helper()
	b, err := os.ReadFile("reasons.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var r reasons
	if err := yaml.UnmarshalStrict(b, &r); err != nil {
		t.Fatal(err)
	}
	var all []*verdict
	add := func(of map[string]map[string]string, gap, set bool) {
		for titles, patterns := range of {
			for title := range strings.SplitSeq(titles, ", ") {
				for pattern, text := range patterns {
					quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`)
					all = append(all, &verdict{
						title: title, pattern: pattern, text: text, gap: gap, set: set, match: regexp.MustCompile("^" + quoted + "$"),
					})
				}
			}
		}
	}
	add(r.Reasons, false, false)
	add(r.Gaps, true, false)
	add(r.InGo, false, true)
	for _, v := range all {
		if !v.set {
			continue
		}
		name, text, _ := strings.Cut(v.text, ": ")
		b, err := os.ReadFile(filepath.Join(root, "test", name))
		if err != nil || !strings.Contains(string(b), text) {
			t.Errorf("reasons.yaml says that %s sets %s of %s, but there is no %q in it: %v", name, v.pattern, v.title, text, err)
		}
		v.text = "`" + strings.TrimPrefix(name, "e2e/") + "`"
	}

	return all
}

func page(all []*Table, of map[string]map[string]*verdict, verdicts []*verdict) string {
	fields, set, gaps := 0, 0, 0
	for _, table := range all {
		fields += len(table.Fields)
		for field := range table.Fields {
			if len(table.Set[field]) > 0 {
				set++
			}
		}
	}
	for _, v := range verdicts {
		switch {
		case v.gap:
			gaps += v.fields
		case v.set:
			set += v.fields
		}
	}
	var s strings.Builder
	fmt.Fprintf(&s, `# Which tests set which fields

This page lists each field of the APIs that a restore meets, and the cases of `+"`test/cases`"+` or other
manifests that set it.
`+"`cd test && go test ./fields -update`"+` writes it from the CRDs of the versions under test, the
manifests, and [reasons.yaml](../../test/fields/reasons.yaml).
Of %d fields, %d are set, %d have a reason why no test needs them, and %d are gaps.
`, fields, set, fields-set-gaps, gaps)
	s.WriteString("\n## Gaps\n\n| kind | fields | what no test shows |\n| --- | --- | --- |\n")
	for _, table := range all {
		rows(&s, table, of[table.Title], "| "+table.Title+" ", func(v *verdict) bool { return v != nil && v.gap })
	}
	for _, table := range all {
		fmt.Fprintf(&s, "\n## %s\n\n| fields | set by, or why not |\n| --- | --- |\n", table.Title)
		rows(&s, table, of[table.Title], "", func(v *verdict) bool { return v == nil || !v.gap })
	}

	return s.String()
}

// rows writes a row for all fields of which the same is to say.
func rows(s *strings.Builder, table *Table, of map[string]*verdict, first string, wanted func(v *verdict) bool) {
	var texts []string
	paths := map[string][]string{}
	for _, field := range slices.Sorted(maps.Keys(table.Fields)) {
		v, by := of[field], table.Set[field]
		if !wanted(v) {
			continue
		}
		text, path := "`"+strings.Join(by[:min(len(by), 3)], "`, `")+"`", "`"+field+"`"
		if v != nil {
			text = cmp.Or(v.text, text)
			if strings.Contains(v.pattern, "*") {
				path = fmt.Sprintf("`%s` (%d)", v.pattern, v.fields)
			}
		}
		if paths[text] == nil {
			texts = append(texts, text)
		}
		if !slices.Contains(paths[text], path) {
			paths[text] = append(paths[text], path)
		}
	}
	for _, text := range texts {
		fmt.Fprintf(s, "%s| %s | %s |\n", first, strings.Join(paths[text], ", "), text)
	}
}
