package setting

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The documentation of settings must agree with the definitions.
func TestDefinitions(t *testing.T) {
	var names []string
	for _, d := range Definitions() {
		names = append(names, d.Name)
		if d.Meaning == "" || (d.Values == nil) == (d.Form == "") || len(d.For) == 0 {
			t.Errorf("%s needs a meaning, a purpose, and either values or a form: %+v", d.Name, d)
		}
		for _, what := range d.For {
			if what != ForBackup && what != ForRestore {
				t.Errorf("%s: a setting can't be for a %s", d.Name, what)
			}
		}
		for _, value := range append(d.Values, d.Default) {
			if _, err := Parse(map[string]string{d.Name: value}, nil); err != nil {
				t.Errorf("%s must accept %q: %v", d.Name, value, err)
			}
		}
		if _, err := Parse(map[string]string{d.Name: "?"}, nil); err == nil {
			t.Errorf("%s: an unknown value must not stand for the default", d.Name)
		}
		before, _ := Parse(nil, nil)
		after, _ := Parse(nil, map[string]string{Prefix + d.Name: d.Default})
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s: the documented default must be the real one: -without, +with:\n%s", d.Name, diff)
		}
		for _, value := range d.Values {
			if changed, _ := Parse(map[string]string{d.Name: value}, nil); value != d.Default && cmp.Equal(before, changed) {
				t.Errorf("%s: %s has no effect", d.Name, value)
			}
		}
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("The names must be sorted and unique: %v", names)
	}
}

// The example has every setting with its default and a comment.
func TestExample(t *testing.T) {
	b, err := os.ReadFile("../../example/settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var example struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal(b, &example); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, d := range Definitions() {
		want[d.Name] = d.Default
		if !regexp.MustCompile(`\n  # [^\n]+\n  ` + d.Name + `: `).Match(b) {
			t.Errorf("%s must have a comment in the line above", d.Name)
		}
	}
	if diff := cmp.Diff(want, example.Data); diff != "" {
		t.Errorf("-default, +example:\n%s", diff)
	}
}

// The page has a section for each setting with its values, and a row in the table at its top.
func TestPage(t *testing.T) {
	b, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	for _, d := range Definitions() {
		_, section, ok := strings.Cut(page, "\n## "+d.Name+"\n")
		if !ok {
			t.Errorf("docs/settings.md has no section on %s", d.Name)

			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, value := range d.Values {
			if !strings.Contains(section, "`"+value+"`") {
				t.Errorf("The section on %s does not describe %s", d.Name, value)
			}
		}
		for _, must := range []string{"```", "Refused:"} {
			if !strings.Contains(section, must) {
				t.Errorf("The section on %s lacks %q", d.Name, must)
			}
		}
		value := "none"
		if d.Default != "" {
			value = "`" + d.Default + "`"
		}
		if row := "\n| [`" + d.Name + "`](#" + d.Name + ") | " + strings.Join(d.For, ", ") + " | " + value + " | " + d.Meaning + " |"; !strings.Contains(page, row) {
			t.Errorf("docs/settings.md lacks the row %q", row)
		}
	}
	for section := range strings.SplitSeq(page, "\n## ") {
		name, _, _ := strings.Cut(section, "\n")
		_, err := definitionOf(name)
		if isName := regexp.MustCompile(`^[a-z-]+$`).MatchString(name); isName && err != nil {
			t.Errorf("docs/settings.md has a section on the unknown setting %s", name)
		}
	}
}
