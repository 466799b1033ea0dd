package externalname

import (
	"fmt"
	"go/ast"
)

// readOverrides finds in a file the rules of external-names outside of the tables. The functions of
// the main package that apply the tables are none.
func (c *config) readOverrides(f *ast.File, main bool) error {
	var failed error
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			return !c.readConfigurator(n)
		case *ast.FuncDecl:
			if c.functions[n.Name.Name] == n && returnsName(n) {
				return false // The tables call it.
			}
		case *ast.AssignStmt:
			if e := overriding(n); e != nil && (!main || !isCommon(n.Lhs, e)) && failed == nil {
				failed = fmt.Errorf("cannot find the resource for which %s sets how the external-name follows from the id", f.Name.Name)
			}
		}

		return failed == nil
	})

	return failed
}

// returnsName reports whether a function returns the configuration of an external-name, or a
// function that returns one.
func returnsName(fn *ast.FuncDecl) bool {
	if fn.Type.Results == nil || len(fn.Type.Results.List) == 0 {
		return false
	}
	of, is := fn.Type.Results.List[0].Type.(*ast.SelectorExpr)

	return is && of.Sel.Name == fieldName
}

// readConfigurator reads the configuration of one resource outside of the tables, and reports
// whether the call is one.
func (c *config) readConfigurator(call *ast.CallExpr) bool {
	fn, is := call.Fun.(*ast.SelectorExpr)
	if !is || fn.Sel.Name != fnConfigure || len(call.Args) != 2 {
		return false
	}
	resource, is := scope(nil).text(call.Args[0])
	if !is {
		return false
	}
	ast.Inspect(call.Args[1], func(n ast.Node) bool {
		a, is := n.(*ast.AssignStmt)
		if !is {
			return true
		}
		if e := overriding(a); e != nil {
			rule := c.ruleOf(e, nil)
			if before, twice := c.rules[resource]; twice && before != rule {
				rule = ""
			}
			c.rules[resource] = rule
		}

		return true
	})

	return true
}

// overriding returns the external-name's configuration, or its GetExternalNameFn, that an
// assignment sets for a resource; nil if it sets neither.
func overriding(a *ast.AssignStmt) ast.Expr {
	for n, to := range a.Lhs {
		field, is := to.(*ast.SelectorExpr)
		if !is || len(a.Rhs) != len(a.Lhs) {
			continue
		}
		of, nested := field.X.(*ast.SelectorExpr)
		switch {
		case field.Sel.Name == fieldName && (!nested || of.Sel.Name != "MetaResource"):
			return a.Rhs[n]
		case field.Sel.Name == fieldNameOf:
			return a.Rhs[n]
		}
	}

	return nil
}

// isCommon reports whether an assignment sets the configuration from the tables, which is a
// variable, or the default of all resources.
func isCommon(to []ast.Expr, e ast.Expr) bool {
	if field, is := to[0].(*ast.SelectorExpr); !is || field.Sel.Name != fieldName {
		return false
	}
	if _, is := e.(*ast.Ident); is {
		return true
	}
	s, is := e.(*ast.SelectorExpr)

	return is && isUpjet(s) && s.Sel.Name == "IdentifierFromProvider"
}
