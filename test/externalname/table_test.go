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
		"NoKinds":      {Provider{Name: "x", Repository: Repository(tagged)}, "cannot find its kinds"},
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
