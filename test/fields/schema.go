// Package fields lists the fields of the APIs that a restore meets, and the manifests of the tests
// that set them. Its test writes and checks docs/dev/fields.md.
package fields

import (
	"context"
	_ "embed" // For apis.yaml.
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

//go:embed apis.yaml
var apis []byte

// An Inventory has the tables of the page, and what they are made from.
type Inventory struct {
	Tables  []*Table
	Sources []struct{ Program, Module, Files string }
	// Flags of velero's commands, and the fields that they set.
	Flags map[string]string
}

// A Table has the fields of kinds, and who sets them, or anything below or above them.
type Table struct {
	Title  string
	Kinds  *regexp.Regexp
	Fields map[string]bool     `json:"-"`
	Set    map[string][]string `json:"-"`
}

// Titles of tables whose kinds are not known by their names.
const (
	xr     = "XR"
	legacy = "Legacy XR"
	claim  = "Claim"
)

// deepest is how many names a path has at most. What is below is one field.
const deepest = 6

// Read returns the tables with all fields of the APIs. The go command downloads modules that are not
// in its cache, as for the stack.
func Read(ctx context.Context, root string) (*Inventory, error) {
	all, dir := &Inventory{}, ""
	if err := yaml.UnmarshalStrict(apis, all); err != nil {
		return nil, fmt.Errorf("cannot parse apis.yaml: %w", err)
	}
	for _, t := range all.Tables {
		t.Fields, t.Set = map[string]bool{}, map[string][]string{}
	}
	for _, s := range all.Sources {
		var err error
		if dir, err = folder(ctx, s.Program, s.Module, dir, root); err != nil {
			return nil, err
		}
		files, err := filepath.Glob(filepath.Join(dir, s.Files))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("cannot find the fields in %s/%s: %w", dir, s.Files, err)
		}
		for _, file := range files {
			if err := all.addFile(file); err != nil {
				return nil, err
			}
		}
	}

	return all, nil
}

// folder returns the folder of a module in the version of a program, or the one that the module in
// another folder requires; the root if there is no module.
func folder(ctx context.Context, program, module, before, root string) (string, error) {
	if module == "" {
		return root, nil
	}
	version := build.Version(program)
	if program == "" {
		mod, err := os.ReadFile(filepath.Join(before, "go.mod"))
		found := regexp.MustCompile(module + ` (\S+)`).FindStringSubmatch(string(mod))
		if err != nil || found == nil {
			return "", fmt.Errorf("cannot find the version of %s in %s/go.mod: %w", module, before, err)
		}
		version = found[1]
	}

	return moduleOf(ctx, module, version)
}

// Module returns the folder of a program's module in the version that the stack has.
func Module(ctx context.Context, program, module string) (string, error) {
	return moduleOf(ctx, module, build.Version(program))
}

func moduleOf(ctx context.Context, module, version string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version)
	cmd.Dir = os.TempDir()
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot get %s %s: %w\n%s", module, version, err, out)
	}
	var got struct {
		Dir string `json:"Dir"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		return "", fmt.Errorf("cannot read where the go command put %s %s: %w", module, version, err)
	}

	return got.Dir, nil
}

// addFile adds the fields of the kind that a CRD defines, or of XRs and claims.
func (all *Inventory) addFile(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read fields: %w", err)
	}
	if strings.HasSuffix(file, ".go") {
		all.table(legacy).addSource(string(b), "CompositeResourceSpecProps", "spec")
		all.table(claim).addSource(string(b), "CompositeResourceClaimSpecProps", "spec")
		if strings.Contains(file, "crossplane-runtime") {
			all.table(xr).addSource(string(b), "CompositeResourceSpecProps", "spec.crossplane")
		}

		return nil
	}
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal(b, &crd); err != nil {
		return fmt.Errorf("cannot parse %s: %w", file, err)
	}
	if t := all.of(crd.Spec.Names.Kind + "." + crd.Spec.Group); t != nil {
		for _, v := range crd.Spec.Versions {
			t.addSchema(v.Schema.OpenAPIV3Schema, "", 0)
		}
	}

	return nil
}

func (all *Inventory) table(title string) *Table {
	return all.Tables[slices.IndexFunc(all.Tables, func(t *Table) bool { return t.Title == title })]
}

// of returns the table of a kind, or nil.
func (all *Inventory) of(kind string) *Table {
	for _, t := range all.Tables {
		if t.Kinds != nil && t.Kinds.FindString(kind) == kind {
			return t
		}
	}

	return nil
}

// addSchema adds the fields of an OpenAPI schema that have no fields of their own.
func (t *Table) addSchema(schema any, path string, depth int) {
	m, _ := schema.(map[string]any)
	arrays := 0
	for items, ok := m["items"]; ok; items, ok = m["items"] {
		m, _ = items.(map[string]any)
		arrays++
	}
	path += strings.Repeat("[]", arrays)
	properties, _ := m["properties"].(map[string]any)
	if len(properties) == 0 || depth == deepest || m["x-kubernetes-preserve-unknown-fields"] == true {
		t.Fields[path] = true

		return
	}
	for name, property := range properties {
		if depth > 0 || !isCommon(name) {
			t.addSchema(property, strings.TrimPrefix(path+"."+name, "."), depth+1)
		}
	}
}

// isCommon reports whether a field is one of all objects, or their status.
func isCommon(name string) bool {
	return slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, name)
}

// addSource adds the fields of the schemas in a function of Crossplane, whose source is indented as
// the schemas are nested. What the function adds for legacy XRs the others don't have.
func (t *Table) addSource(source, function, root string) {
	_, body, _ := strings.Cut(source, "\nfunc "+function+"(")
	body, _, _ = strings.Cut(body, "\n}\n")
	names, indents := []string{root}, []int{0}
	for _, line := range regexp.MustCompile(`(?m)^(\t+)(?:"(\w+)": +\{|props\["(\w+)"\] =|(Items):)`).FindAllStringSubmatch(body, -1) {
		for len(line[1]) <= indents[len(indents)-1] {
			names, indents = names[:len(names)-1], indents[:len(indents)-1]
		}
		above := names[len(names)-1]
		name := above + "." + line[2]
		switch {
		case line[2] == "crossplane" || line[3] != "" && t.Title == xr, above == "":
			name = ""
		case line[3] != "":
			name = root + "." + line[3]
		case line[4] != "":
			name = above + "[]"
		}
		names, indents = append(names, name), append(indents, len(line[1]))
		if name != "" {
			t.Fields[name] = true
			delete(t.Fields, above)
		}
	}
}
