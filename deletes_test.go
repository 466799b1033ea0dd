package main

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The product deletes nothing and takes nobody's finalizer off (promise P9). No client of
// Kubernetes is asked to, whatever its type: each Delete of one has a context and a name.
func TestNothingDeletes(t *testing.T) {
	for path, file := range sources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if slices.Contains([]string{"DeleteCollection", "DeleteAllOf"}, n.Sel.Name) {
					t.Errorf("%s asks for %s", path, n.Sel.Name)
				}
			case *ast.CallExpr:
				called, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || called.Sel.Name != "Delete" || len(n.Args) < 2 {
					break
				}
				if of, ok := called.X.(*ast.Ident); !ok || of.Name != "slices" && of.Name != "maps" {
					t.Errorf("%s calls Delete", path)
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.BasicLit); ok && key.Value == `"finalizers"` {
					t.Errorf("%s writes finalizers", path)
				}
			}

			return true
		})
	}
}

// sources returns the parsed files of this module without its tests, by path.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "test" || path == "internal/xptest" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)

		return err
	})
	if err != nil || len(files) < 100 {
		t.Fatal(len(files), err)
	}

	return files
}

// The shipped roles allow no deletion, no creation of what could do one, and of all Secrets only
// the key that signs marks can be read.
func TestRolesAllowNoDeletion(t *testing.T) {
	var roles int
	examples := os.DirFS("example")
	err := fs.WalkDir(examples, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := fs.ReadFile(examples, path)
		if err != nil {
			return err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
		for {
			role := rbacv1.ClusterRole{}
			if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil || role.Kind != "Role" && role.Kind != "ClusterRole" {
				continue // Other kinds have other fields.
			}
			roles++
			if !bytes.Contains(content, []byte("# The worst that ")) {
				t.Errorf("%s does not say the worst that a holder of its roles can do", path)
			}
			for _, rule := range role.Rules {
				checkRule(t, path, rule)
			}
		}
	})
	if err != nil || roles < 5 {
		t.Fatal(roles, err)
	}
}

func checkRule(t *testing.T, path string, rule rbacv1.PolicyRule) {
	t.Helper()
	has := func(all []string, some ...string) bool {
		return slices.ContainsFunc(all, func(s string) bool { return s == "*" || slices.Contains(some, s) })
	}
	if has(rule.Verbs, "delete", "deletecollection", "escalate", "bind", "impersonate") {
		t.Errorf("%s: %v on %v", path, rule.Verbs, rule.Resources)
	}
	creates := has(rule.Verbs, "create", "update", "patch")
	if creates && has(rule.Resources, "pods", "pods/exec", "jobs", "cronjobs", "deployments", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "roles", "clusterroles",
		"rolebindings", "clusterrolebindings", "secrets", "serviceaccounts", "serviceaccounts/token") {
		t.Errorf("%s: %v on %v", path, rule.Verbs, rule.Resources)
	}
	isKey := slices.Equal(rule.ResourceNames, []string{"velero-plugin-for-crossplane-mark-key"}) && slices.Equal(rule.Verbs, []string{"get"})
	if has(rule.APIGroups, "") && has(rule.Resources, "secrets") && !isKey {
		t.Errorf("%s: %v on Secrets %v", path, rule.Verbs, rule.ResourceNames)
	}
}
