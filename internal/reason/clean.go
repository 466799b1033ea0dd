package reason

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestPart is how many bytes of a name, an error or another part a message has. A tenant can
// write names and conditions of a megabyte, and a message can have several, in a log, an operation
// and an Event.
const longestPart = 2 << 10

// LongestField is how many bytes a field of a log has at most. The longest valid name has 253, in a
// namespace of 63.
const LongestField = 512

// breaks matches line breaks with the spaces around them.
var breaks = regexp.MustCompile(` *\n[ \n]*`)

// Clean returns a string as one line of printable characters. A replacement character stands for
// each other one.
func Clean(s string) string {
	if !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c >= unicode.MaxASCII }) {
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

// Clip returns a string with no more than about most bytes.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}

	return fmt.Sprintf("%s… (%d bytes more)", s[:cut], len(s)-cut)
}

// clipped returns the arguments of a format, each clipped.
func clipped(args []any) []any {
	parts := make([]any, len(args))
	for n, arg := range args {
		parts[n] = arg
		text := fmt.Sprint(arg)
		if len(text) <= longestPart {
			continue
		}
		parts[n] = Clip(text, longestPart)
		if err, ok := arg.(error); ok {
			parts[n] = shortError{error: err}
		}
	}

	return parts
}

// A shortError is an error with a long text.
type shortError struct{ error }

func (e shortError) Error() string { return Clip(e.error.Error(), longestPart) }

func (e shortError) Unwrap() error { return e.error }
