package printer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// jsonPathPrefix is the prefix of a format with a template, as kubectl has it.
const jsonPathPrefix = string(JSONPath) + "="

// ParseFormat returns the format of a name in names, or of "jsonpath=" and a template. The error of
// a template says what is wrong with it; otherwise ok is false.
func ParseFormat(name string, names []string) (f Format, ok bool, err error) {
	if template, is := strings.CutPrefix(name, jsonPathPrefix); is {
		_, err := parsePath(template)

		return Format(name), err == nil, err
	}
	f = Format(strings.ToLower(name))

	return f, slices.Contains(names, string(f)), nil
}

// parsePath parses a template. Like kubectl it takes one field without braces: .summary.held.
func parsePath(template string) (*jsonpath.JSONPath, error) {
	if !strings.Contains(template, "{") {
		template = "{." + strings.TrimPrefix(template, ".") + "}"
	}
	p := jsonpath.New("output").AllowMissingKeys(true)
	if err := p.Parse(template); err != nil {
		return nil, fmt.Errorf("cannot read the JSONPath template %q: %w", template, err)
	}

	return p, nil
}

// generic returns data as a program sees it that decodes its JSON.
func generic(data any) (any, error) {
	b, err := json.Marshal(data)
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller adds the context.
	}
	var v any
	err = json.Unmarshal(b, &v)

	return v, err //nolint:wrapcheck // The caller adds the context.
}

// cleanedData cleans all strings of decoded JSON.
func cleanedData(v any) any {
	switch v := v.(type) {
	case string:
		return reason.Clean(v)
	case []any:
		for n := range v {
			v[n] = cleanedData(v[n])
		}
	case map[string]any:
		for key := range v {
			v[key] = cleanedData(v[key])
		}
	}

	return v
}

// fields returns what a template selects in data. It has no control characters but those of the
// template.
func fields(data any, template string) ([]byte, error) {
	p, err := parsePath(template)
	if err != nil {
		return nil, err
	}
	v, err := generic(data)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := p.Execute(&out, cleanedData(v)); err != nil {
		return nil, err //nolint:wrapcheck // It names the field.
	}

	return append(bytes.TrimRight(out.Bytes(), "\n"), '\n'), nil
}

// objectNames returns a line for each object in the trees, in the form that kubectl takes.
func objectNames(r *report.Report) []byte {
	var b bytes.Buffer
	seen := map[string]bool{}
	for n := range report.All(r.Trees...) {
		gk := n.GroupVersionKind().GroupKind()
		line := strings.ToLower(strings.TrimSuffix(gk.Kind+"."+gk.Group, ".")) + "/" + n.Name
		if key := n.Namespace + "/" + line; !seen[key] {
			seen[key] = true
			b.WriteString(line + "\n")
		}
	}

	return b.Bytes()
}

// Sort sorts trees by the value of a JSONPath expression in each root, numbers by value and all
// else as text. Trees without the value come last. It fails if the expression is malformed.
func Sort(trees []*report.Node, expression string) error {
	p, err := parsePath(expression)
	if err != nil {
		return err
	}
	values := make(map[*report.Node]any, len(trees))
	for _, n := range trees {
		root := *n
		root.Children = nil
		v, err := generic(root)
		if err != nil {
			return err
		}
		results, err := p.FindResults(v)
		if err != nil {
			return fmt.Errorf("cannot sort by %s: %w", expression, err)
		}
		if len(results) > 0 && len(results[0]) > 0 {
			values[n] = results[0][0].Interface()
		}
	}
	slices.SortStableFunc(trees, func(a, b *report.Node) int { return compare(values[a], values[b]) })

	return nil
}

func compare(a, b any) int {
	x, isNumber := a.(float64)
	y, areNumbers := b.(float64)
	switch {
	case a == nil || b == nil:
		return cmp.Compare(missing(a), missing(b))
	case isNumber && areNumbers:
		return cmp.Compare(x, y)
	default:
		return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
	}
}

func missing(v any) int {
	if v == nil {
		return 1
	}

	return 0
}
