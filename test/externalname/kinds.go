package externalname

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names that upjet generates: the method that returns the Terraform resource of a kind, and the
// constant with the group of a package.
const (
	methodResource = "GetTerraformResourceType"
	constantGroup  = "CRDGroup"
)

// kinds reads the kinds of a version from their generated Go files. It returns the Terraform
// resource of each, "" if there are several. A namespaced kind and the cluster-scoped one of the
// same name count as one.
func kinds(files map[string][]byte) (map[schema.GroupKind]string, error) {
	groups, resources := map[string]string{}, map[string]map[string]string{}
	for name, content := range files {
		if !strings.HasPrefix(name, dirKinds+"/") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, content, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("cannot read the kinds of a provider: %w", err)
		}
		dir := path.Dir(name)
		if path.Base(name) == fileGroup {
			groups[dir] = groupIn(f)

			continue
		}
		if resources[dir] == nil {
			resources[dir] = map[string]string{}
		}
		maps.Copy(resources[dir], resourcesIn(f))
	}
	all := map[schema.GroupKind]string{}
	for dir, of := range resources {
		if groups[dir] == "" {
			return nil, fmt.Errorf("cannot find the group of the kinds in %s", dir)
		}
		for kind, resource := range of {
			gk := schema.GroupKind{Group: withoutScope(groups[dir]), Kind: kind}
			if other, is := all[gk]; is && other != resource {
				resource = ""
			}
			all[gk] = resource
		}
	}

	return all, nil
}

// groupIn returns the group in a file of a package.
func groupIn(f *ast.File) string {
	for _, d := range f.Decls {
		constants, is := d.(*ast.GenDecl)
		if !is || constants.Tok != token.CONST {
			continue
		}
		for _, s := range constants.Specs {
			if v, is := s.(*ast.ValueSpec); is && len(v.Names) == 1 && len(v.Values) == 1 && v.Names[0].Name == constantGroup {
				group, _ := text(v.Values[0])

				return group
			}
		}
	}

	return ""
}

// resourcesIn returns the Terraform resources of a file's kinds by kind.
func resourcesIn(f *ast.File) map[string]string {
	found := map[string]string{}
	for _, d := range f.Decls {
		fn, is := d.(*ast.FuncDecl)
		if !is || fn.Name.Name != methodResource || fn.Recv == nil || len(fn.Recv.List) != 1 || fn.Body == nil || len(fn.Body.List) != 1 {
			continue
		}
		star, isPointer := fn.Recv.List[0].Type.(*ast.StarExpr)
		back, isReturn := fn.Body.List[0].(*ast.ReturnStmt)
		if !isPointer || !isReturn || len(back.Results) != 1 {
			continue
		}
		kind, isName := star.X.(*ast.Ident)
		if resource, is := text(back.Results[0]); is && isName {
			found[kind.Name] = resource
		}
	}

	return found
}

// text returns the value of a string literal.
func text(e ast.Expr) (string, bool) {
	literal, is := e.(*ast.BasicLit)
	if !is || literal.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(literal.Value)

	return s, err == nil
}

// namespaced is the suffix of the groups of namespaced kinds: ec2.aws.m.upbound.io instead of
// ec2.aws.upbound.io.
const namespaced = ".m.upbound.io"

// withoutScope returns the group of the cluster-scoped kind for that of the namespaced one.
func withoutScope(group string) string {
	if before, is := strings.CutSuffix(group, namespaced); is {
		return before + ".upbound.io"
	}

	return group
}
