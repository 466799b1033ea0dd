package printer

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// cleaned returns a report without anything that a terminal, a browser or a parser would obey
// rather than show: names and messages are whatever somebody wrote into an object. No field is
// forgotten. What has nothing of the kind is not copied: a report can be about a hundred thousand
// objects.
func cleaned(r *report.Report) *report.Report {
	v, _ := cleanAll(reflect.ValueOf(r))
	c, _ := reflect.TypeAssert[*report.Report](v)

	return c
}

// cleanAll returns a value with all strings in it cleaned, and whether that is another one.
func cleanAll(v reflect.Value) (reflect.Value, bool) {
	switch v.Kind() { //nolint:exhaustive // The others have no strings in a report.
	case reflect.String:
		s := Clean(v.String())
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

// cleanRef is cleanAll for what an object is called. What does not print in it is spelled out, so
// that no name looks like another.
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

// cleanParts is cleanAll for what has so many parts.
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

// breaks are what divides lines, with the spaces around it.
var breaks = regexp.MustCompile(` *\n[ \n]*`)

// Clean returns a string as one line of printable characters. What is not printable stays visible
// as a replacement character.
func Clean(s string) string {
	printable := true
	for n := range len(s) {
		printable = printable && s[n] >= ' ' && s[n] < unicode.MaxASCII
	}
	if printable {
		return s
	}
	s = strings.Map(func(c rune) rune {
		switch {
		case c == ' ':
			return c
		case unicode.IsSpace(c):
			return '\n'
		case unicode.IsPrint(c):
			return c
		default:
			return unicode.ReplacementChar
		}
	}, s)

	return breaks.ReplaceAllString(strings.Trim(s, "\n"), " ")
}

// escaped returns JSON with what is not printable as \u escapes, so that it is the same data and
// does nothing to a terminal. encoding/json does that for the control characters of ASCII only.
// With pairs, what is beyond the first plane of Unicode is two escapes, as in JSON, or else one, as
// in YAML.
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
