package externalname

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// kind returns the generated file of a resource's kind.
func kind(name, resource string) string {
	return "package v1\n\nfunc (mg *" + name + ") GetTerraformResourceType() string {\n\treturn \"" + resource + "\"\n}\n"
}

func group(name string) string {
	return "package v1\n\nconst (\n\tCRDGroup   = \"" + name + "\"\n\tCRDVersion = \"v1\"\n)\n"
}

func names(entries string) string {
	return begin + "var names = map[string]config.ExternalName{\n" + entries + "}\n"
}

// commit commits the files to a repository; "" removes a file. It tags the commit with the version
// unless that is "".
func commit(t *testing.T, dir, version string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if content == "" {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	git(t, dir, "add", "-A")
	git(t, dir, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "m")
	if version != "" {
		git(t, dir, "tag", version)
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// acme makes a provider with two versions and a later commit, all different.
func acme(t *testing.T) Provider {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	commit(t, dir, "v0.9.0", map[string]string{"config/names.go": "no Go"})
	commit(t, dir, "v1.0.0", map[string]string{
		"config/names.go": names(`
			"acme_bucket": config.NameAsIdentifier, "acme_net": config.TemplatedStringAsIdentifier("", "/nets/{{ .external_name }}"),
			"acme_moved": config.IdentifierFromProvider, "acme_odd": special(), "acme_soon": config.IdentifierFromProvider,
			"acme_unused": config.IdentifierFromProvider, "acme_gone": config.IdentifierFromProvider,
		`),
		"apis/s/v1/zz_groupversion_info.go": group("s.acme.upbound.io"), "apis/s/v1/zz_bucket_terraformed.go": kind("Bucket", "acme_bucket"),
		"apis/s/v1/zz_odd_terraformed.go": kind("Odd", "acme_odd"), "apis/s/v1/zz_moved_terraformed.go": kind("Moved", "acme_moved"),
		"apis/s/v1/zz_soon_terraformed.go": kind("Soon", "acme_soon"), "apis/s/v1/zz_gone_terraformed.go": kind("Gone", "acme_gone"),
		"apis/n/v1/zz_groupversion_info.go": group("acme.upbound.io"), "apis/n/v1/zz_net_terraformed.go": kind("Net", "acme_net"),
		"apis/n/v1/zz_net_types.go": "no Go", "internal/a.go": "no Go",
	})
	commit(t, dir, "v2.0.0-rc.0", map[string]string{"config/names.go": "no Go"})
	commit(t, dir, "v2.0.0", map[string]string{
		"config/names.go": names(`
			"acme_bucket": config.NameAsIdentifier, "acme_net": config.TemplatedStringAsIdentifier("", "/nets/{{ .external_name }}"),
			"acme_moved": config.TemplatedStringAsIdentifier("", "a/{{ .external_name }}"), "acme_odd": special(), "acme_soon": config.IdentifierFromProvider,
			"acme_unused": config.IdentifierFromProvider,
		`),
		"apis/s/v1/zz_gone_terraformed.go":             "",
		"apis/namespaced/s/v1/zz_groupversion_info.go": group("s.acme.m.upbound.io"), "apis/namespaced/s/v1/zz_bucket_terraformed.go": kind("Bucket", "acme_bucket"),
		"apis/namespaced/s/v1/zz_both_terraformed.go": kind("Both", "acme_bucket"), "apis/s/v2/zz_groupversion_info.go": group("s.acme.upbound.io"),
		"apis/s/v2/zz_both_terraformed.go": kind("Both", "acme_net"), "config/names_test.go": "no Go",
	})
	commit(t, dir, "", map[string]string{"config/s/config.go": begin + `func Configure(p *config.Provider) {
		p.AddResourceConfigurator("acme_soon", func(r *config.Resource) { r.ExternalName.GetExternalNameFn = own })
	}`})

	return Provider{Name: "provider-acme", Domain: "acme.upbound.io", Repository: Repository(dir)}
}

// The table has the rules that are the same in all versions and in the newest commit, and counts
// the others.
func TestRead(t *testing.T) {
	p := acme(t)
	table, err := Read(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	id, err := p.Repository.Commit(t.Context(), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	want := intro + "# from provider-acme acme.upbound.io v1.0.0 v2.0.0 (2 versions) and commit " + id +
		": 3 kinds; left out: 2 not certain, 2 changed between versions, 1 without a kind\n" +
		"Bucket.s.acme.upbound.io *\nGone.s.acme.upbound.io *\nNet.acme.upbound.io /nets/*\n"
	if diff := cmp.Diff(want, string(table.Render())); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if again, err := Read(t.Context(), p); err != nil || string(again.Render()) != want {
		t.Errorf("it must be the same again: error %v\n%s", err, again.Render())
	}
}

// A bare repository works like a checkout. Another folder is an error.
func TestReadRepositories(t *testing.T) {
	p := acme(t)
	want, err := Read(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	bare := Provider{Name: p.Name, Domain: p.Domain, Repository: Repository(filepath.Join(string(p.Repository), ".git"))}
	if got, err := Read(t.Context(), bare); err != nil || !bytes.Equal(got.Render(), want.Render()) {
		t.Errorf("got error %v\n%s", err, got.Render())
	}
	other := p
	other.Domain = "other.upbound.io"
	empty := t.TempDir()
	git(t, empty, "init", "-q")
	commit(t, empty, "v0.1.0", nil)
	tagged := t.TempDir()
	git(t, tagged, "init", "-q")
	commit(t, tagged, "v1.0.0", nil)
	for name, tc := range map[string]struct {
		p    Provider
		want string
	}{
		"NoRepository": {Provider{Name: "x", Repository: Repository(t.TempDir())}, "cannot run git tag"},
		"NoVersion":    {Provider{Name: "x", Repository: Repository(empty)}, "cannot find a version"},
		"NoKinds":      {Provider{Name: "x", Repository: Repository(tagged)}, "cannot run git archive"},
		"OtherDomain":  {other, "is not of a group of other.upbound.io"},
	} {
		if _, err := Read(t.Context(), tc.p); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want %s", name, err, tc.want)
		}
	}
}

func TestKinds(t *testing.T) {
	got, err := kinds(map[string][]byte{
		"apis/s/v1/zz_groupversion_info.go": []byte(group("s.acme.upbound.io")), "apis/s/v1/zz_bucket_terraformed.go": []byte(kind("Bucket", "acme_bucket")),
		"apis/s/v1/zz_others_terraformed.go": []byte(kind("A", "acme_a") + "func (mg B) GetTerraformResourceType() string { return \"acme_b\" }\n" +
			"func GetTerraformResourceType() string { return \"acme_c\" }\nfunc (mg *D) GetTerraformResourceType() string { return name }\nfunc (mg *E) Other() string { return \"acme_e\" }\n"),
		"config/names.go": []byte("no Go"),
	})
	want := map[schema.GroupKind]string{{Group: "s.acme.upbound.io", Kind: "Bucket"}: "acme_bucket", {Group: "s.acme.upbound.io", Kind: "A"}: "acme_a"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, -want, +got:\n%s", err, diff)
	}
	for name, files := range map[string]map[string][]byte{
		"NoGroup": {"apis/s/v1/zz_bucket_terraformed.go": []byte(kind("Bucket", "acme_bucket"))},
		"NoGo":    {"apis/s/v1/zz_bucket_terraformed.go": []byte("no Go")},
	} {
		if _, err := kinds(files); err == nil {
			t.Errorf("%s: there must be an error", name)
		}
	}
}

// No source makes the program fail other than with an error.
func FuzzKinds(f *testing.F) {
	f.Add(group("s.acme.upbound.io"), kind("Bucket", "acme_bucket"))
	f.Add("package v1; const CRDGroup = 1", "package v1; func (*A[T]) GetTerraformResourceType() { return }")
	f.Fuzz(func(t *testing.T, group, kind string) {
		all, err := kinds(map[string][]byte{"apis/s/v1/zz_groupversion_info.go": []byte(group), "apis/s/v1/zz_a_terraformed.go": []byte(kind)})
		for gk := range all {
			if err == nil && (gk.Group == "" || gk.Kind == "") {
				t.Errorf("%v is no kind", gk)
			}
		}
	})
}
