package externalname

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const begin = `package config

import "example.org/upjet/pkg/config"

`

// The rule of a resource follows from the provider's configuration, and is empty where that can't
// be evaluated.
func TestRules(t *testing.T) {
	cases := map[string]struct {
		reason string
		// expression is the resource's entry in the table, declared are other declarations of the
		// file, and override is another file's change of the resource.
		expression, declared, override string
		want                           Rule
	}{
		"Provider":   {reason: "The provider assigns it.", expression: "config.IdentifierFromProvider", want: "*"},
		"Name":       {reason: "The name is the id.", expression: "config.NameAsIdentifier", want: "*"},
		"Parameter":  {reason: "So is another parameter.", expression: `config.ParameterAsIdentifier("monitor")`, want: "*"},
		"Elsewhere":  {reason: "A function of another package is not evaluated.", expression: "other.IdentifierFromProvider"},
		"Computed":   {reason: "It is another attribute than the id.", expression: `config.FrameworkResourceWithComputedIdentifier("agent_id", "stub")`},
		"Last":       {reason: "It is at the end.", expression: `config.TemplatedStringAsIdentifier("name", "/groups/{{ .parameters.group }}/nets/{{ .external_name }}")`, want: "/nets/*"},
		"OnlyLast":   {reason: "Nothing else is before it.", expression: `config.TemplatedStringAsIdentifier("name", "nets/{{.external_name}}")`, want: "nets/*"},
		"First":      {reason: "It is at the begin.", expression: `config.TemplatedStringAsIdentifier("", "{{ .external_name }}:{{ .parameters.of }}")`, want: "*:"},
		"Middle":     {reason: "The text around the name may contain the separators.", expression: `config.TemplatedStringAsIdentifier("", "a/{{ .external_name }}/b")`},
		"All":        {reason: "It is all of it.", expression: `config.TemplatedStringAsIdentifier("", "{{ .external_name }}")`, want: "*"},
		"Nameless":   {reason: "Without a name it is all of the id.", expression: `config.TemplatedStringAsIdentifier("", "{{ .parameters.of }}")`, want: "*"},
		"Dash":       {reason: "Names have dashes.", expression: `config.TemplatedStringAsIdentifier("", "{{ .parameters.of }}-{{ .external_name }}")`},
		"Adjacent":   {reason: "The beginning of the name can't be found.", expression: `config.TemplatedStringAsIdentifier("", "{{ .parameters.of }}{{ .external_name }}")`},
		"Twice":      {reason: "The name is there twice.", expression: `config.TemplatedStringAsIdentifier("", "{{ .external_name }}/{{ .external_name }}")`},
		"Condition":  {reason: "The template has a condition.", expression: `config.TemplatedStringAsIdentifier("", "{{ if .parameters.of }}a/{{ end }}b/{{ .external_name }}")`},
		"Misspelt":   {reason: "Upjet does not find a misspelt field.", expression: `config.TemplatedStringAsIdentifier("", "a/{{ .external_names }}")`},
		"Blank":      {reason: "The table has none.", expression: `config.TemplatedStringAsIdentifier("", "a b/{{ .external_name }}")`},
		"Computing":  {reason: "The template can't be evaluated.", expression: `config.TemplatedStringAsIdentifier("", arn("service"))`},
		"Undeclared": {reason: "The function is not known.", expression: "special()"},
		"Kept": {
			reason: "It changes something else.", expression: `stub("id-0")`, want: "*", declared: `func stub(s string) config.ExternalName {
				e := config.IdentifierFromProvider
				e.GetIDFn = func() string { if s == "" { return "" }; return s }
				e.IdentifierFields = []string{"region"}
				return e
			}`,
		},
		"Inline": {
			reason: "So does one that has no name.", want: "*",
			expression: `func() config.ExternalName { e := config.NameAsIdentifier; e.GetIDFn = nil; return e }()`,
		},
		"Changed": {
			reason: "It finds the name in its own way.", expression: "special()", declared: `func special() config.ExternalName {
				e := config.IdentifierFromProvider
				e.GetExternalNameFn = func(state map[string]any) (string, error) { return "x", nil }
				return e
			}`,
		},
		"Passed": {
			reason: "The template is that of the caller.", expression: `unnamed("a/{{ .external_name }}")`, want: "a/*",
			declared: `func unnamed(template string) config.ExternalName {
				e := config.TemplatedStringAsIdentifier("", template)
				e.DisableNameInitializer = true
				return e
			}`,
		},
		"PassedOn": {
			reason: "Also over two.", expression: `outer("a/{{ .external_name }}")`, want: "a/*",
			declared: `func outer(of string) config.ExternalName { return inner(of) }
			func inner(template string) config.ExternalName { return config.TemplatedStringAsIdentifier("", template) }`,
		},
		"PassedChanged": {
			reason: "The function ignores its argument.", expression: `unnamed("a/{{ .external_name }}")`,
			declared: `func unnamed(template string) config.ExternalName {
				template = "b/" + template
				return config.TemplatedStringAsIdentifier("", template)
			}`,
		},
		"Branch": {
			reason: "It depends.", expression: "special(true)", declared: `func special(b bool) config.ExternalName {
				e := config.IdentifierFromProvider
				if b { e.GetExternalNameFn = nil }
				return e
			}`,
		},
		"Recursive": {reason: "There is no end to it.", expression: "special()", declared: `func special() config.ExternalName { return special() }`},
		"Method":    {reason: "It is of something else.", expression: "special()", declared: `func (x thing) special() config.ExternalName { return config.NameAsIdentifier }`},
		"From": {
			reason: "It is made from another.", want: "*",
			expression: `config.NewExternalNameFrom(config.IdentifierFromProvider, config.WithGetIDFn(nil), config.WithSetIdentifierArgumentsFn(nil))`,
		},
		"FromChanged": {reason: "With its own way.", expression: `config.NewExternalNameFrom(config.IdentifierFromProvider, config.WithGetExternalNameFn(nil))`},
		"FromOther":   {reason: "An unknown option makes the rule uncertain.", expression: `config.NewExternalNameFrom(config.IdentifierFromProvider, options()...)`},
		"Literal":     {reason: "The literal has the function itself.", expression: `config.ExternalName{GetExternalNameFn: config.IDAsExternalName}`, want: "*"},
		"LiteralOwn":  {reason: "Or it has its own way.", expression: `config.ExternalName{GetExternalNameFn: own}`},
		"Overridden": {
			reason: "The configuration of the resource itself counts.", expression: "config.IdentifierFromProvider",
			override: `p.AddResourceConfigurator("acme_thing", func(r *config.Resource) { r.ExternalName.GetExternalNameFn = own })`,
		},
		"OverriddenAlike": {
			reason: "It is the same.", expression: "config.NameAsIdentifier", want: "*",
			override: `p.AddResourceConfigurator("acme_thing", func(r *config.Resource) { r.ExternalName = config.IdentifierFromProvider })`,
		},
		"OverriddenOtherwise": {
			reason: "It is another.", expression: `config.TemplatedStringAsIdentifier("", "a/{{ .external_name }}")`,
			override: `p.AddResourceConfigurator("acme_thing", func(r *config.Resource) { r.ExternalName = config.NameAsIdentifier })`,
		},
		"Another": {
			reason: "It is said of another.", expression: "config.IdentifierFromProvider", want: "*",
			override: `p.AddResourceConfigurator("acme_other", func(r *config.Resource) { r.ExternalName.GetExternalNameFn = own })`,
		},
		"Irrelevant": {
			reason: "It has nothing to do with it.", expression: "config.IdentifierFromProvider", want: "*",
			override: `p.AddResourceConfigurator("acme_thing", func(r *config.Resource) { r.ExternalName.OmittedFields = nil; r.MetaResource.ExternalName = "x" })`,
		},
		"Common": {
			reason: "All begin with that, and the table counts.", expression: `config.TemplatedStringAsIdentifier("", "a/{{ .external_name }}")`, want: "a/*",
			override: `r.ExternalName = config.IdentifierFromProvider; r.ExternalName = e`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := "config/thing/config.go"
			if strings.HasPrefix(tc.override, "r.") {
				file = "config/all.go"
			}
			files := map[string][]byte{
				"config/names.go": []byte(begin + "var names = map[string]config.ExternalName{\n\"acme_thing\": " + tc.expression + ",\n}\n" + tc.declared +
					"\nvar ownNotTestedConfigs = map[string]config.ExternalName{\"acme_thing\": other()}\n"),
				file:                    []byte(begin + "func Configure(p *config.Provider) {\n" + tc.override + "\n}\n"),
				"apis/thing/ignored.go": []byte("no Go"),
			}
			got, err := rules(files)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got["acme_thing"]); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Code that can't be read at all is an error. Otherwise the table would lack kinds.
func TestRulesRefuse(t *testing.T) {
	cases := map[string]struct{ reason, file, want string }{
		"NoGo":      {reason: "It must be Go.", file: "no Go", want: "cannot read the configuration"},
		"AnyOfThem": {reason: "The resource can't be found.", file: begin + "func all(r *config.Resource) { r.ExternalName.GetExternalNameFn = own }", want: "cannot find the resource for which"},
		"Variable":  {reason: "Other packages must name the resource too.", file: "", want: "cannot find the resource for which"},
		"Loop": {
			reason: "The resource comes from a loop.", want: "cannot find the resource for which",
			file: begin + "func all(p *config.Provider) { for _, n := range list { p.AddResourceConfigurator(n, func(r *config.Resource) { r.ExternalName = own() }) } }",
		},
		"NoPairs": {reason: "It is no table.", file: begin + "var t = map[string]config.ExternalName{config.NameAsIdentifier}", want: "no pair"},
		"NoKey":   {reason: "The entry's key is no constant.", file: begin + "var t = map[string]config.ExternalName{name: config.NameAsIdentifier}", want: "the resource of an entry"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			name := "config/names.go"
			if tc.file == "" {
				name, tc.file = "config/thing/config.go", begin+"func all(r *config.Resource) { r.ExternalName = e }"
			}
			if _, err := rules(map[string][]byte{name: []byte(tc.file)}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s Got error %v", tc.reason, err)
			}
		})
	}
}

// If two tables have a resource, the rule is uncertain unless both have the same.
func TestRulesOfTwoTables(t *testing.T) {
	got, err := rules(map[string][]byte{
		"config/a.go": []byte(begin + `var a = map[string]config.ExternalName{"acme_a": config.NameAsIdentifier, "acme_b": config.NameAsIdentifier}`),
		"config/b.go": []byte(begin + `var b = map[string]config.ExternalName{"acme_a": config.IdentifierFromProvider, "acme_b": special()}`),
	})
	if diff := cmp.Diff(map[string]Rule{"acme_a": "*", "acme_b": ""}, got); diff != "" || err != nil {
		t.Errorf("error %v, -want, +got:\n%s", err, diff)
	}
}

// No configuration makes the program fail other than with an error, or gives an invalid rule.
func FuzzRules(f *testing.F) {
	f.Add(`"acme_thing": config.TemplatedStringAsIdentifier("", "a/{{ .external_name }}")`, "func f() {}")
	f.Add(`"acme_thing": f("{{ .external_name }}:x")`, `func f(s string) config.ExternalName { e := g(s); e.X = 1; return e }; func g(s ...string) config.ExternalName { return f(s) }`)
	f.Add(`"acme_thing": func(a, b string) config.ExternalName { return config.NewExternalNameFrom(a) }("x")`, "")
	f.Fuzz(func(t *testing.T, entry, declared string) {
		all, err := rules(map[string][]byte{"config/a.go": []byte(begin + "var a = map[string]config.ExternalName{" + entry + "}\n" + declared)})
		if err != nil {
			return
		}
		for resource, rule := range all {
			before, after, found := strings.Cut(string(rule), "*")
			if rule != "" && (!found || strings.Contains(after, "*") || !isRule(before, after)) {
				t.Errorf("%q of %s is no rule", rule, resource)
			}
		}
	})
}
