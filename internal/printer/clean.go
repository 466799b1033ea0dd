package printer

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// cleaned returns a report without control characters, which a terminal, a browser or a parser
// could interpret: names and messages are untrusted. Reflection covers all fields. Clean parts are
// not copied: a report can be about a hundred thousand objects.
func cleaned(r *report.Report) *report.Report {
	v, _ := cleanAll(reflect.ValueOf(r))
	c, _ := reflect.TypeAssert[*report.Report](v)

	return c
}

// cleanAll returns a value with clean strings, and whether it differs from v.
func cleanAll(v reflect.Value) (reflect.Value, bool) {
	switch v.Kind() { //nolint:exhaustive // A report has no strings in the other kinds.
	case reflect.String:
		s := reason.Clean(v.String())
		if s == v.String() {
			return v, false
		}

		return reflect.ValueOf(s).Convert(v.Type()), true
	case reflect.Pointer:
		if v.IsNil() {
			return v, false
		}
		elem, changed := cleanAll(v.Elem())
		if !changed {
			return v, false
		}
		c := reflect.New(elem.Type())
		c.Elem().Set(elem)

		return c, true
	case reflect.Slice:
		return cleanParts(v, v.Len(), reflect.Value.Index)
	case reflect.Struct:
		switch v.Type() {
		case reflect.TypeFor[time.Time]():
			return v, false
		case reflect.TypeFor[xp.Ref]():
			return cleanRef(v)
		}

		return cleanParts(v, v.NumField(), reflect.Value.Field)
	default:
		return v, false
	}
}

// cleanRef quotes what of a name is not printable, so that two names never look the same.
func cleanRef(v reflect.Value) (reflect.Value, bool) {
	r, _ := reflect.TypeAssert[xp.Ref](v)
	clean := r
	for _, s := range []*string{&clean.APIVersion, &clean.Kind, &clean.Namespace, &clean.Name} {
		if !xp.IsPrintable(*s) {
			*s = strconv.Quote(*s)
		}
	}

	return reflect.ValueOf(clean), clean != r
}

// cleanParts cleans the elements of a slice or the fields of a struct.
func cleanParts(v reflect.Value, parts int, part func(reflect.Value, int) reflect.Value) (reflect.Value, bool) {
	c, changed := v, false
	for n := range parts {
		clean, is := cleanAll(part(v, n))
		if !is {
			continue
		}
		if !changed {
			changed = true
			c = reflect.New(v.Type()).Elem()
			c.Set(v)
			if v.Kind() == reflect.Slice {
				c.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, parts), v))
			}
		}
		part(c, n).Set(clean)
	}

	return c, changed
}

// escaped returns JSON whose unprintable characters are \u escapes: the data is the same, and a
// terminal does not interpret it. encoding/json escapes ASCII control characters only. With pairs,
// a character above U+FFFF becomes two escapes as in JSON, otherwise one as in YAML.
func escaped(b []byte, pairs bool) []byte {
	var out strings.Builder
	out.Grow(len(b))
	for _, c := range string(b) {
		switch {
		case c == '\n' || c < unicode.MaxASCII || unicode.IsPrint(c):
			out.WriteRune(c)
		case utf16.RuneLen(c) == 2 && !pairs:
			fmt.Fprintf(&out, `\U%08x`, c)
		case utf16.RuneLen(c) == 2:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, c)
		}
	}

	return []byte(out.String())
}
