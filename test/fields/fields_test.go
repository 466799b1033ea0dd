package fields

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	root = "../.."
	file = "docs/dev/fields.md"
)

var update = flag.Bool("update", false, "write "+file)

// A reasons has what is to say of fields that no manifest sets. Each map is from titles of tables,
// separated by commas, to patterns for paths.
type reasons struct {
	// InGo names a file, and a text in it that sets the field.
	InGo map[string]map[string]string `json:"inGo"`
	// Reasons say why no case needs the field.
	Reasons map[string]map[string]string `json:"reasons"`
}

// A verdict is what a table says of fields that no manifest sets.
type verdict struct {
	title, pattern, text string
	match                *regexp.Regexp
	set                  bool
	fields               int
}

// TestPage expects that each field is set or explained, and that the page says so.
// go test ./fields -update writes the page.
func TestPage(t *testing.T) {
	all, err := Read(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if err := all.Mark(root); err != nil {
		t.Fatal(err)
	}
	verdicts := readReasons(t)
	of := map[string]map[string]*verdict{}
	for _, table := range all.Tables {
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

	want := page(all.Tables, of, verdicts)
	path := filepath.Join(root, file)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
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
	add := func(of map[string]map[string]string, set bool) {
		for titles, patterns := range of {
			for title := range strings.SplitSeq(titles, ", ") {
				for pattern, text := range patterns {
					quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`)
					all = append(all, &verdict{
						title: title, pattern: pattern, text: text, set: set, match: regexp.MustCompile("^" + quoted + "$"),
					})
				}
			}
		}
	}
	add(r.Reasons, false)
	add(r.InGo, true)
	slices.SortFunc(all, func(a, b *verdict) int { return strings.Compare(a.pattern, b.pattern) })
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
	fields, set := 0, 0
	for _, table := range all {
		fields += len(table.Fields)
		for field := range table.Fields {
			if len(table.Set[field]) > 0 {
				set++
			}
		}
	}
	for _, v := range verdicts {
		if v.set {
			set += v.fields
		}
	}
	var s strings.Builder
	fmt.Fprintf(&s, `# Which tests set which fields

This page lists each field of the APIs that a restore meets, and the cases of `+"`test/cases`"+` or other
manifests that set it.
`+"`cd test && go test ./fields -update`"+` writes it from the CRDs of the versions under test, the
manifests, and [reasons.yaml](../../test/fields/reasons.yaml).
Of %d fields, %d are set, and %d have a reason why no test needs them. A number shows how many
fields a pattern stands for.
`, fields, set, fields-set)
	for _, table := range all {
		fmt.Fprintf(&s, "\n## %s\n\n| fields | set by, or why not |\n| --- | --- |\n", table.Title)
		rows(&s, table, of[table.Title])
	}

	return s.String()
}

// rows writes a row for all fields of which the same is to say.
func rows(s *strings.Builder, table *Table, of map[string]*verdict) {
	var texts []string
	paths := map[string][]string{}
	for _, field := range slices.Sorted(maps.Keys(table.Fields)) {
		v, by := of[field], table.Set[field]
		text, path := "`"+strings.Join(by[:min(len(by), 3)], "`, `")+"`", "`"+field+"`"
		if v != nil {
			text = v.text
			if strings.Contains(v.pattern, "*") {
				path = fmt.Sprintf("%#q (%d)", v.pattern, v.fields)
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
		fmt.Fprintf(s, "| %s | %s |\n", strings.Join(paths[text], ", "), text)
	}
}

// TestMark expects what manifests set in ways that are not plain.
func TestMark(t *testing.T) {
	cases := map[string]struct {
		reason, manifest, title string
		want                    []string
	}{
		"Base": {
			reason: "A Composition sets what its templates have.", title: "Namespaced MR", want: []string{"spec", "spec.a"},
			manifest: "{kind: Composition, spec: {resources: [{base: {apiVersion: cloud.m.example.org/v1, kind: Bucket, metadata: {name: a}, spec: {a: 1}}}]}}",
		},
		"Patches": {
			reason: "Patches set fields of the template, and those to the XR do not.", title: "Namespaced MR", want: []string{"spec", "spec.a", "spec.b[]"},
			manifest: `{resources: [{base: {apiVersion: cloud.m.example.org/v1, kind: Bucket}, patches: [
  {type: FromCompositeFieldPath, fromFieldPath: spec.a}, {fromFieldPath: x, toFieldPath: "spec.b[0]"}, {type: ToCompositeFieldPath, fromFieldPath: spec.c}]}]}`,
		},
		"Schedule": {
			reason: "A Schedule has the spec of a Backup.", title: "Backup", want: []string{"spec", "spec.ttl"},
			manifest: "{apiVersion: velero.io/v1, kind: Schedule, spec: {schedule: x, template: {ttl: 1h}}}",
		},
		"Merge": {
			reason: "A step of a case sets what it patches.", title: "Restore", want: []string{"", "spec", "spec.a"},
			manifest: "{made: [{patch: {kind: Restore.v1.velero.io, merge: {spec: {a: 1}}}}]}",
		},
		"JSON": {
			reason: "So does one with a JSON patch.", title: "Restore", want: []string{"spec", "spec.a[]", "spec.a[].b", "spec.a[].b.c"},
			manifest: "{made: [{patch: {kind: Restore.v1.velero.io, json: [{op: add, path: /spec/a/0/b, value: {c: 1}}]}}]}",
		},
		"Flags": {
			reason: "The arguments of velero set fields, too.", title: "Restore",
			want:     []string{"spec", "spec.includedNamespaces[]", "spec.labelSelector", "spec.labelSelector.matchLabels"},
			manifest: "{restore: [--include-namespaces, a, --selector=a=b]}",
		},
		"Claim": {
			reason: "An XRD says what is a claim.", title: claim, want: []string{"spec", "spec.a"},
			manifest: `{items: [
  {apiVersion: apiextensions.crossplane.io/v1, kind: CompositeResourceDefinition, spec: {group: a.org, names: {kind: X}, claimNames: {kind: C}}},
  {apiVersion: a.org/v1, kind: C, spec: {a: 1}}]}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := &Inventory{}
			if err := yaml.UnmarshalStrict(apis, all); err != nil {
				t.Fatal(err)
			}
			for _, table := range all.Tables {
				table.Set = map[string][]string{}
			}
			w := world{objects: []*unstructured.Unstructured{{}}}
			if err := yaml.Unmarshal([]byte(tc.manifest), &w.objects[0].Object); err != nil {
				t.Fatal(err)
			}
			if err := all.mark([]world{w}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(all.table(tc.title).Set))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
