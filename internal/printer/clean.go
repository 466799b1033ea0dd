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
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// clean cleans a part of a report of control characters, which a terminal, a browser or a parser could
// interpret: names and messages are untrusted. Reflection covers all fields.
func clean(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // A report has no strings in the other kinds.
	case reflect.String:
		v.SetString(reason.Clean(v.String()))
	case reflect.Pointer:
		clean(v.Elem())
	case reflect.Slice:
		for n := range v.Len() {
			clean(v.Index(n))
		}
	case reflect.Struct:
		switch s := v.Addr().Interface().(type) {
		case *time.Time:
		case *xp.Ref:
			// What is not printable is quoted, so that two names never look the same.
			for _, part := range []*string{&s.APIVersion, &s.Kind, &s.Namespace, &s.Name} {
				if !xp.IsPrintable(*part) {
					*part = strconv.Quote(*part)
				}
			}
		default:
			for _, field := range v.Fields() {
				clean(field)
			}
		}
	}
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
