package externalname

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Names in the configuration of a provider.
const (
	fieldName    = "ExternalName"
	fieldNameOf  = "GetExternalNameFn"
	fnIDAsName   = "IDAsExternalName"
	fnConfigure  = "AddResourceConfigurator"
	suffixUnused = "NotTestedConfigs" // Kinds that the provider does not have.
)

// A Rule is the table's text for how the external-name follows from an id; "" if that is uncertain.
type Rule string

// rules reads the configuration of a provider's version, and returns the rule of each Terraform
// resource; "" if it is uncertain.
func rules(files map[string][]byte) (map[string]Rule, error) {
	c := config{functions: map[string]*ast.FuncDecl{}, rules: map[string]Rule{}, calling: map[string]bool{}}
	set := token.NewFileSet()
	parsed := map[string]*ast.File{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasPrefix(name, dirConfig+"/") {
			continue
		}
		f, err := parser.ParseFile(set, name, files[name], parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("cannot read the configuration of a provider: %w", err)
		}
		parsed[name] = f
		if path.Dir(name) == dirConfig {
			c.declare(f)
		}
	}
	for _, t := range c.tables {
		if err := c.readTable(t); err != nil {
			return nil, fmt.Errorf("cannot read the external-names in %s: %w", set.Position(t.Pos()), err)
		}
	}
	for name, f := range parsed {
		if err := c.readOverrides(f, path.Dir(name) == dirConfig); err != nil {
			return nil, err
		}
	}

	return c.rules, nil
}

// config is the configuration of a provider.
type config struct {
	// functions of the main package, and its tables of external-names.
	functions map[string]*ast.FuncDecl
	tables    []*ast.CompositeLit
	rules     map[string]Rule
	// calling has the functions that are being evaluated.
	calling map[string]bool
}

// declare records the declarations of a file of the main package.
func (c *config) declare(f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				c.functions[d.Name.Name] = d
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				v, is := s.(*ast.ValueSpec)
				if !is || len(v.Values) != 1 || strings.HasSuffix(v.Names[0].Name, suffixUnused) {
					continue
				}
				if t, is := v.Values[0].(*ast.CompositeLit); is && isTable(t) {
					c.tables = append(c.tables, t)
				}
			}
		}
	}
}

// isTable reports whether a literal is a map of external-names by resource.
func isTable(t *ast.CompositeLit) bool {
	m, is := t.Type.(*ast.MapType)
	if !is {
		return false
	}
	of, is := m.Value.(*ast.SelectorExpr)

	return is && of.Sel.Name == fieldName
}

func (c *config) readTable(t *ast.CompositeLit) error {
	for _, e := range t.Elts {
		kv, is := e.(*ast.KeyValueExpr)
		if !is {
			return errors.New("cannot read an entry that is no pair")
		}
		resource, is := scope(nil).text(kv.Key)
		if !is {
			return errors.New("cannot find the resource of an entry")
		}
		rule := c.ruleOf(kv.Value, nil)
		if other, twice := c.rules[resource]; twice && other != rule {
			rule = "" // The provider may use either table.
		}
		c.rules[resource] = rule
	}

	return nil
}

// scope has the values of the names in a function.
type scope map[string]ast.Expr

// ruleOf returns the rule of an expression; "" if it is uncertain.
func (c *config) ruleOf(e ast.Expr, s scope) Rule {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return c.ruleOf(e.X, s)
	case *ast.Ident:
		if of := s[e.Name]; of != nil {
			return c.ruleOf(of, nil)
		}
	case *ast.SelectorExpr:
		if name := e.Sel.Name; isUpjet(e) && (name == "IdentifierFromProvider" || name == "NameAsIdentifier") {
			return "*"
		}
	case *ast.CompositeLit:
		return literal(e)
	case *ast.CallExpr:
		return c.called(e, s)
	}

	return ""
}

// isUpjet reports whether a selector belongs to upjet's package config, which providers import
// under a few names.
func isUpjet(e *ast.SelectorExpr) bool {
	of, is := e.X.(*ast.Ident)

	return is && slices.Contains([]string{"config", "tjconfig", "ujconfig"}, of.Name)
}

// literal returns the rule of a composite literal.
func literal(e *ast.CompositeLit) Rule {
	for _, field := range e.Elts {
		kv, is := field.(*ast.KeyValueExpr)
		if !is {
			return ""
		}
		if key, is := kv.Key.(*ast.Ident); is && key.Name == fieldNameOf {
			if value, is := kv.Value.(*ast.SelectorExpr); is && isUpjet(value) && value.Sel.Name == fnIDAsName {
				return "*"
			}
		}
	}

	return ""
}

// called returns the rule of a function's result.
func (c *config) called(e *ast.CallExpr, s scope) Rule {
	switch fn := e.Fun.(type) {
	case *ast.FuncLit:
		return c.returned(fn.Type, fn.Body, e.Args, s)
	case *ast.Ident:
		if f := c.functions[fn.Name]; f != nil && f.Body != nil && !c.calling[fn.Name] {
			c.calling[fn.Name] = true
			defer delete(c.calling, fn.Name)

			return c.returned(f.Type, f.Body, e.Args, s)
		}
	case *ast.SelectorExpr:
		switch {
		case !isUpjet(fn):
		case fn.Sel.Name == "ParameterAsIdentifier":
			return "*"
		case fn.Sel.Name == "TemplatedStringAsIdentifier" && len(e.Args) == 2:
			if template, is := s.text(e.Args[1]); is {
				return templated(template)
			}
		case fn.Sel.Name == "NewExternalNameFrom" && len(e.Args) > 0 && keepsName(e.Args[1:]):
			return c.ruleOf(e.Args[0], s)
		}
	}

	return ""
}

// keepsName reports whether options of NewExternalNameFrom don't change how the external-name
// follows from the id.
func keepsName(options []ast.Expr) bool {
	return !slices.ContainsFunc(options, func(o ast.Expr) bool {
		call, is := o.(*ast.CallExpr)
		if !is {
			return true
		}
		fn, is := call.Fun.(*ast.SelectorExpr)

		return !is || !isUpjet(fn) || fn.Sel.Name != "WithGetIDFn" && fn.Sel.Name != "WithSetIdentifierArgumentsFn"
	})
}

// text returns the value of a string literal, or of a name that stands for one.
func (s scope) text(e ast.Expr) (string, bool) {
	if name, is := e.(*ast.Ident); is && s[name.Name] != nil {
		e = s[name.Name]
	}
	literal, is := e.(*ast.BasicLit)
	if !is || literal.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(literal.Value)

	return value, err == nil
}

// returned returns the rule of the result of a function that takes an upjet configuration and
// changes only other parts of it. The rule is uncertain for any other function.
func (c *config) returned(of *ast.FuncType, body *ast.BlockStmt, args []ast.Expr, outer scope) Rule {
	s, ok := bind(of, args, outer)
	if !ok {
		return ""
	}
	rules := map[string]Rule{}
	for _, statement := range body.List {
		switch statement := statement.(type) {
		case *ast.AssignStmt:
			if len(statement.Lhs) != 1 || len(statement.Rhs) != 1 || !c.assign(rules, s, statement) {
				return ""
			}
		case *ast.ReturnStmt:
			if len(statement.Results) != 1 {
				return ""
			}
			if name, is := statement.Results[0].(*ast.Ident); is && s[name.Name] == nil {
				return rules[name.Name]
			}

			return c.ruleOf(statement.Results[0], s)
		default:
			return ""
		}
	}

	return ""
}

// bind binds a function's parameters to its arguments, as far as those are strings.
func bind(of *ast.FuncType, args []ast.Expr, outer scope) (scope, bool) {
	s := scope{}
	n := 0
	for _, field := range of.Params.List {
		_, variadic := field.Type.(*ast.Ellipsis)
		for _, name := range field.Names {
			if variadic {
				return s, true
			}
			if n >= len(args) {
				return nil, false
			}
			if arg := args[n]; arg != nil {
				if is, bound := arg.(*ast.Ident); bound && outer[is.Name] != nil {
					arg = outer[is.Name]
				}
				s[name.Name] = arg
			}
			n++
		}
	}

	return s, true
}

// assign evaluates an assignment in a function, and reports whether its effect is known.
func (c *config) assign(rules map[string]Rule, s scope, a *ast.AssignStmt) bool {
	switch to := a.Lhs[0].(type) {
	case *ast.Ident:
		delete(s, to.Name)
		rules[to.Name] = c.ruleOf(a.Rhs[0], s)

		return true
	case *ast.SelectorExpr:
		return to.Sel.Name != fieldNameOf
	default:
		return false
	}
}

// nameIn finds the external-name in a template, as upjet does (pkg/config/externalname.go,
// externalNameRegex).
var nameIn = regexp.MustCompile(`{{ *\.external_name\b *}}`)

// templated returns the rule by which upjet finds the external-name in an id from a template.
func templated(template string) Rule {
	all := nameIn.FindAllStringIndex(template, -1)
	if len(all) == 0 && !strings.Contains(template, "external") {
		return "*" // A resource without a name: the external-name is all of the id.
	}
	if len(all) != 1 {
		return ""
	}
	before, after := template[:all[0][0]], template[all[0][1]:]
	if n := strings.LastIndex(before, "}}"); n >= 0 {
		before = before[n+len("}}"):]
		if before == "" {
			return ""
		}
	}
	if n := strings.Index(after, "{{"); n >= 0 {
		after = after[:n]
	}
	rule := Rule(before + "*" + after)
	if strings.Contains(before+after, "*") || hasActions(template) || !isRule(before, after) {
		return ""
	}

	return rule
}

// hasActions reports whether a template does more than insert values.
func hasActions(template string) bool {
	return regexp.MustCompile(`{{-? *(if|else|end|range|with|define|template|block|break|continue)\b`).MatchString(template)
}

// separators can delimit an external-name in an id: no name contains them.
const separators = "/:,|"

// isRule reports whether an external-name in an id is delimited by the text from the id's begin to
// the name, or from the name to the id's end.
func isRule(before, after string) bool {
	switch {
	case before != "" && after != "", strings.ContainsAny(before+after, " \t\r\n"):
		return false
	case before != "":
		return strings.ContainsAny(before[len(before)-1:], separators)
	default:
		return after == "" || strings.ContainsAny(after[:1], separators)
	}
}
