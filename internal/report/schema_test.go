package report

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

var update = flag.Bool("update", false, "write docs/report.schema.json")

const (
	schemaFile = "../../docs/report.schema.json"
	pageFile   = "../../docs/validate.md"
)

// TestSchema compares docs/report.schema.json with the types. go test ./internal/report -update
// writes it.
func TestSchema(t *testing.T) {
	s := newSchema(t)
	want, err := json.MarshalIndent(s.of(reflect.TypeFor[Report]()), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(schemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/report.schema.json must match the types, because programs read reports by it; run go test ./internal/report -update: -types, +file:\n%s", diff)
	}
}

// TestPageNamesAll looks for each field and value in docs/validate.md.
func TestPageNamesAll(t *testing.T) {
	b, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	page, s := string(b), newSchema(t)
	s.of(reflect.TypeFor[Report]())
	for name, properties := range s.fields {
		for _, p := range properties {
			if !strings.Contains(page, "`"+p+"`") {
				t.Errorf("docs/validate.md does not describe %s of %s", p, name)
			}
		}
	}
	for name, values := range s.values {
		if name == "Code" {
			continue // docs/messages.md has a table of codes.
		}
		for _, v := range values {
			if !strings.Contains(page, "`"+v+"`") {
				t.Errorf("docs/validate.md does not describe the %s %s", name, v)
			}
		}
	}
}

// A schema is a JSON schema made of Go types and their doc comments.
type schema struct {
	// about are the descriptions, by "Type" or "Type.Field".
	about map[string]string
	// values are the constants of a type. fields are its names in JSON.
	values, fields map[string][]string
	defs           map[string]any
}

func newSchema(t *testing.T) *schema {
	t.Helper()
	s := &schema{about: map[string]string{}, values: map[string][]string{}, fields: map[string][]string{}, defs: map[string]any{}}
	for _, folder := range []string{".", "../xp"} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		var files []*ast.File
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			f, err := parser.ParseFile(set, folder+"/"+e.Name(), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		p, err := doc.NewFromFiles(set, files, folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, typed := range p.Types {
			if folder == "." || typed.Name == "Ref" {
				s.read(typed)
			}
		}
	}

	s.about["Code"] = "A Code names a kind of Problem. Programs may rely on it."
	for _, r := range reason.All() {
		if r.Group == reason.Report {
			s.values["Code"] = append(s.values["Code"], string(r.Code))
		}
	}

	return s
}

func (s *schema) read(typed *doc.Type) {
	s.about[typed.Name] = oneLine(typed.Doc)
	for _, c := range typed.Consts {
		for _, spec := range c.Decl.Specs {
			values, _ := spec.(*ast.ValueSpec)
			for _, v := range values.Values {
				if literal, ok := v.(*ast.BasicLit); ok {
					value, _ := strconv.Unquote(literal.Value)
					s.values[typed.Name] = append(s.values[typed.Name], value)
				}
			}
		}
	}
	for _, spec := range typed.Decl.Specs {
		named, _ := spec.(*ast.TypeSpec)
		structure, ok := named.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range structure.Fields.List {
			for _, name := range f.Names {
				s.about[typed.Name+"."+name.Name] = oneLine(f.Doc.Text())
			}
		}
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func (s *schema) of(t reflect.Type) map[string]any {
	root, properties := s.object(t)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = APIVersion
	root["$defs"] = s.defs
	properties["apiVersion"]["const"] = APIVersion
	properties["kind"]["enum"] = []string{KindInspection, KindValidation, KindRelease}

	return root
}

func (s *schema) object(t reflect.Type) (object map[string]any, properties map[string]map[string]any) {
	properties, required := map[string]map[string]any{}, []string{}
	s.add(t, properties, &required)
	s.fields[t.Name()] = nil
	for name := range properties {
		s.fields[t.Name()] = append(s.fields[t.Name()], name)
	}

	return map[string]any{"type": "object", "description": s.about[t.Name()], "properties": properties, "required": required}, properties
}

// add adds the fields of a struct as encoding/json encodes them.
func (s *schema) add(t reflect.Type, properties map[string]map[string]any, required *[]string) {
	for f := range t.Fields() {
		if f.Anonymous {
			s.add(f.Type, properties, required)

			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := s.value(f.Type)
		if about := s.about[t.Name()+"."+f.Name]; about != "" {
			p["description"] = about
		}
		properties[name] = p
		if options != "omitempty" {
			*required = append(*required, name)
		}
	}
}

func (s *schema) value(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return s.value(t.Elem())
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": "array", "items": s.value(t.Elem())}
	case t.Kind() == reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.value(t.Elem())}
	case t.Kind() == reflect.Struct:
		if _, known := s.defs[t.Name()]; !known {
			s.defs[t.Name()] = nil // The type can contain itself.
			s.defs[t.Name()], _ = s.object(t)
		}

		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	case t.Kind() == reflect.Int:
		return map[string]any{"type": "integer"}
	case t.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case len(s.values[t.Name()]) > 0:
		// They are examples and no enum: a newer version may have more.
		return map[string]any{"type": "string", "examples": s.values[t.Name()]}
	default:
		return map[string]any{"type": "string"}
	}
}
