package printer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// cleaned returns a copy of a report without anything that a terminal, a browser or a parser would obey rather than show: names and messages are
// whatever somebody wrote into an object. Through JSON no field is forgotten.
func cleaned(r *report.Report) (*report.Report, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the report: %w", err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, fmt.Errorf("cannot decode the report: %w", err)
	}
	if b, err = json.Marshal(cleanAll(v)); err != nil {
		return nil, fmt.Errorf("cannot encode the report: %w", err)
	}
	c := &report.Report{}
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("cannot decode the report: %w", err)
	}

	return c, nil
}

func cleanAll(v any) any {
	switch v := v.(type) {
	case string:
		return Clean(v)
	case []any:
		for n := range v {
			v[n] = cleanAll(v[n])
		}
	case map[string]any:
		for key := range v {
			v[key] = cleanAll(v[key])
		}
	}

	return v
}

// Clean returns a string as one line of printable characters. What is not printable stays visible as a replacement character, so that no name looks
// like another.
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
		case unicode.IsSpace(c):
			return ' '
		case unicode.IsPrint(c):
			return c
		default:
			return unicode.ReplacementChar
		}
	}, s)

	return strings.Join(strings.Fields(s), " ")
}

// escaped returns JSON with what is not printable as \u escapes, so that it is the same data and does nothing to a terminal. encoding/json does
// that for the control characters of ASCII only. With pairs, what is beyond the first plane of Unicode is escaped too, as JSON does it and YAML does not.
func escaped(b []byte, pairs bool) []byte {
	var out strings.Builder
	out.Grow(len(b))
	for _, c := range string(b) {
		switch {
		case c == '\n' || c < unicode.MaxASCII || unicode.IsPrint(c):
			out.WriteRune(c)
		case utf16.RuneLen(c) == 2 && !pairs:
			out.WriteRune(c)
		case utf16.RuneLen(c) == 2:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, c)
		}
	}

	return []byte(out.String())
}
