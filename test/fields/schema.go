// Package fields lists the fields of the APIs that a restore meets, and the manifests of the tests
// that set them. Its test writes and checks docs/dev/fields.md.
package fields

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// A Table is a part of the page: a title, a pattern for the Kind.group that it is about, its fields,
// and by path who sets them and what they belong to.
type Table struct {
	Title  string
	Kinds  *regexp.Regexp
	Fields map[string]bool
	Set    map[string][]string
}

// Titles of tables whose kinds are not known by their names.
const (
	xr     = "XR"
	legacy = "Legacy XR"
	claim  = "Claim"
)

// deepest is how many names a path has at most. What is below is one field.
const deepest = 6

// Tables returns the tables in the order of the page, with their fields.
func Tables(ctx context.Context, root string) ([]*Table, error) {
	var all []*Table
	for _, t := range [][2]string{
		{"XRD", `CompositeResourceDefinition\.apiextensions\.crossplane\.io`},
		{"Composition and CompositionRevision", `Composition(Revision)?\.apiextensions\.crossplane\.io`},
		{"Input of function-patch-and-transform", `Resources\.pt\.fn\.crossplane\.io`},
		{xr},
		{legacy},
		{claim},
		{"Cluster-scoped MR", `[A-Z][a-z]+\.(cloud|upjet)\.example\.org`},
		{"Namespaced MR", `[A-Z][a-z]+\.(cloud|upjet)\.m\.example\.org`},
		{"Object of provider-kubernetes", `Object\.kubernetes(\.m)?\.crossplane\.io`},
		{"ProviderConfig of provider-kubernetes", `(Cluster)?ProviderConfig\.kubernetes(\.m)?\.crossplane\.io`},
		{"Usage of apiextensions.crossplane.io", `Usage\.apiextensions\.crossplane\.io`},
		{"Usage of protection.crossplane.io", `Usage\.protection\.crossplane\.io`},
		{"ClusterUsage", `ClusterUsage\.protection\.crossplane\.io`},
		{"EnvironmentConfig", `EnvironmentConfig\.apiextensions\.crossplane\.io`},
		{"Function", `Function\.pkg\.crossplane\.io`},
		{"Operation", `Operation\.ops\.crossplane\.io`},
		{"CronOperation", `CronOperation\.ops\.crossplane\.io`},
		{"WatchOperation", `WatchOperation\.ops\.crossplane\.io`},
		{"ManagedResourceActivationPolicy", `ManagedResourceActivationPolicy\.apiextensions\.crossplane\.io`},
		{"Backup", `Backup\.velero\.io`},
		{"Restore", `Restore\.velero\.io`},
	} {
		kinds := regexp.MustCompile("^(" + t[1] + ")$")
		all = append(all, &Table{Title: t[0], Kinds: kinds, Fields: map[string]bool{}, Set: map[string][]string{}})
	}
	files, err := sources(ctx, root)
	for _, file := range files {
		if strings.HasSuffix(file, ".go") {
			err = errors.Join(err, addMachinery(all, file))
		} else {
			err = errors.Join(err, addDefinition(all, file))
		}
	}

	return all, err
}

// sources returns the files of the CRDs, and those with the fields that Crossplane gives every XR and
// claim: of v2, which has them in its runtime, and of v1.
func sources(ctx context.Context, root string) ([]string, error) {
	const v2, runtime, v1 = "github.com/crossplane/crossplane/v2", "github.com/crossplane/crossplane-runtime/v2", "github.com/crossplane/crossplane"
	dir, err := source(ctx, v2, build.CrossplaneV2)
	if err != nil {
		return nil, err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	version := regexp.MustCompile(runtime + ` (\S+)`).FindStringSubmatch(string(mod))
	if err != nil || version == nil {
		return nil, fmt.Errorf("cannot find which %s Crossplane has: %w", runtime, err)
	}
	patterns := []string{filepath.Join(root, "test/cloud/crds/*.yaml"), filepath.Join(root, "test/upjet/crds/*.yaml")}
	for _, m := range [][3]string{
		{v2, build.CrossplaneV2, "cluster/crds/*.yaml"}, {runtime, version[1], "pkg/xcrd/schemas.go"},
		{v1, build.CrossplaneV1, "cluster/crds/*.yaml"}, {v1, build.CrossplaneV1, "internal/xcrd/schemas.go"},
		{"github.com/crossplane-contrib/function-patch-and-transform", build.Version("function-patch-and-transform"), "package/input/*.yaml"},
		{"github.com/crossplane-contrib/provider-kubernetes", build.Version("provider-kubernetes"), "package/crds/*.yaml"},
		{"github.com/vmware-tanzu/velero", build.Version("velero"), "config/crd/v1/bases/*.yaml"},
	} {
		dir, err := source(ctx, m[0], m[1])
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, filepath.Join(dir, m[2]))
	}
	var all []string
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("cannot find the fields in %s: %w", pattern, err)
		}
		all = append(all, files...)
	}

	return all, nil
}

// source returns the folder of a module in Go's cache. The go command downloads it only if it is not
// there, as for the stack.
func source(ctx context.Context, module, version string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version)
	cmd.Dir = os.TempDir()
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot get %s %s: %w\n%s", module, version, err, out)
	}
	var got struct{ Dir string }
	if err := json.Unmarshal(out, &got); err != nil {
		return "", fmt.Errorf("cannot read where the go command put %s %s: %w", module, version, err)
	}

	return got.Dir, nil
}

// addDefinition adds the fields of the kind that a CRD defines.
func addDefinition(all []*Table, file string) error {
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read a CRD: %w", err)
	}
	if err := yaml.Unmarshal(b, &crd); err != nil {
		return fmt.Errorf("cannot parse %s: %w", file, err)
	}
	for _, t := range all {
		if !t.Kinds.MatchString(crd.Spec.Names.Kind + "." + crd.Spec.Group) {
			continue
		}
		for _, v := range crd.Spec.Versions {
			t.addSchema(v.Schema.OpenAPIV3Schema, "", 0)
		}
	}

	return nil
}

// addSchema adds the fields of an OpenAPI schema that have no fields of their own.
func (t *Table) addSchema(schema any, path string, depth int) {
	m, _ := schema.(map[string]any)
	for items, ok := m["items"]; ok; items, ok = m["items"] {
		m, _ = items.(map[string]any)
		path += "[]"
	}
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
	return name == "apiVersion" || name == "kind" || name == "metadata" || name == "status"
}

// addMachinery adds the fields that Crossplane's source gives every XR and claim. On v1 each XR is a
// legacy one.
func addMachinery(all []*Table, path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return fmt.Errorf("cannot parse the fields of XRs and claims: %w", err)
	}
	of := map[string][]string{"CompositeResourceSpecProps": {legacy}, "CompositeResourceClaimSpecProps": {claim}}
	if strings.HasSuffix(path, "pkg/xcrd/schemas.go") {
		of["CompositeResourceSpecProps"] = []string{legacy, xr}
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		for _, title := range of[f.Name.Name] {
			root := map[string]string{xr: "spec.crossplane"}[title]
			titled(all, title).addLiterals(f.Body, cmp.Or(root, "spec"))
		}
		delete(of, f.Name.Name)
	}
	if len(of) > 0 {
		return fmt.Errorf("cannot find the fields of XRs and claims in %s", path)
	}

	return nil
}

func titled(all []*Table, title string) *Table {
	return all[slices.IndexFunc(all, func(t *Table) bool { return t.Title == title })]
}

// addLiterals adds the keys of nested literals of schemas, and of assignments to one unless an XR has
// those only in the legacy scope. It returns false if there are none.
func (t *Table) addLiterals(node ast.Node, path string) (found bool) {
	add := func(path string, value ast.Node) bool {
		if found = true; !t.addLiterals(value, path) {
			t.Fields[path] = true
		}

		return false
	}
	ast.Inspect(node, func(n ast.Node) bool {
		var key, value ast.Expr
		switch n := n.(type) {
		case *ast.AssignStmt:
			if index, ok := n.Lhs[0].(*ast.IndexExpr); ok {
				key, value = index.Index, n.Rhs[0]
			}
		case *ast.KeyValueExpr:
			key, value = n.Key, n.Value
		}
		switch key := key.(type) {
		case *ast.BasicLit:
			name, _ := strconv.Unquote(key.Value)
			if _, assigned := n.(*ast.AssignStmt); name == "crossplane" || assigned && t.Title == xr {
				return false
			}

			return add(path+"."+name, value)
		case *ast.Ident:
			return key.Name != "Items" || add(path+"[]", value)
		default:
			return true
		}
	})

	return found
}
