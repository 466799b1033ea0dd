package pack

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// deepest is how deep values are nested at most. Objects of Kubernetes are far from that.
const deepest = 100

// JSON packs an object from its JSON: what decoding it as Kubernetes does and taking fields off gives. It takes what an API server writes, and ok is false for
// anything that it is not sure to read as Kubernetes does, be it wrong or only unusual.
func (p *Packer) JSON(document []byte, shape *Shape) (o Object, ok bool) {
	p.begin()
	r := reading{packer: p, rest: document}
	r.space()
	if len(r.rest) == 0 || r.rest[0] != '{' || !r.object(shape, deepest) {
		return Object{}, false
	}
	r.space()
	if len(r.rest) > 0 {
		return Object{}, false
	}

	return p.end(), true
}

// reading is where somebody is in a document. Its methods are false if they are not sure of what they see.
type reading struct {
	packer *Packer
	rest   []byte
	// dropping says that what is read is not packed.
	dropping bool
}

func (r *reading) space() {
	for len(r.rest) > 0 && (r.rest[0] == ' ' || r.rest[0] == '\n' || r.rest[0] == '\t' || r.rest[0] == '\r') {
		r.rest = r.rest[1:]
	}
}

// next reads a byte, if it is the next after what space there is.
func (r *reading) next(b byte) bool {
	r.space()
	if len(r.rest) == 0 || r.rest[0] != b {
		return false
	}
	r.rest = r.rest[1:]

	return true
}

func (r *reading) literal(s string) bool {
	if len(r.rest) < len(s) || string(r.rest[:len(s)]) != s {
		return false
	}
	r.rest = r.rest[len(s):]

	return true
}

func (r *reading) value(shape *Shape, deep int) bool {
	r.space()
	if len(r.rest) == 0 || deep == 0 {
		return false
	}
	switch r.rest[0] {
	case '{':
		return r.object(shape, deep)
	case '[':
		return r.list(shape, deep)
	case '"':
		return r.text()
	case 't':
		return r.constant("true", tagTrue)
	case 'f':
		return r.constant("false", tagFalse)
	case 'n':
		return r.constant("null", tagNull)
	default:
		return r.number()
	}
}

func (r *reading) constant(s string, tag byte) bool {
	if !r.literal(s) {
		return false
	}
	if !r.dropping {
		r.packer.tag(tag)
	}

	return true
}

func (r *reading) text() bool {
	s, ok := r.string()
	if ok && !r.dropping {
		r.packer.string(s)
	}

	return ok
}

func (r *reading) list(shape *Shape, deep int) bool {
	r.rest = r.rest[1:]
	at, entries := r.open(tagList), 0
	for !r.next(']') {
		if entries > 0 && !r.next(',') || !r.value(shape, deep-1) {
			return false
		}
		entries++
	}
	r.close(at, entries)

	return true
}

func (r *reading) object(shape *Shape, deep int) bool {
	r.rest = r.rest[1:]
	at, entries, kept := r.open(tagObject), 0, 0
	for !r.next('}') {
		if entries > 0 && !r.next(',') {
			return false
		}
		entries++
		r.space()
		name, ok := r.string()
		if !ok || !r.next(':') {
			return false
		}
		before := r.dropping
		r.dropping = before || !keeps(shape, name)
		if !r.dropping {
			r.packer.name(name)
			kept++
		}
		if !r.value(below(shape, name), deep-1) {
			return false
		}
		r.dropping = before
	}
	r.close(at, kept)

	return true
}

func (r *reading) open(tag byte) int {
	if r.dropping {
		return 0
	}

	return r.packer.open(tag)
}

func (r *reading) close(at, entries int) {
	if !r.dropping {
		r.packer.close(at, entries)
	}
}

// string reads a string, and returns what it is without its escapes; nothing, if nobody is to know.
func (r *reading) string() ([]byte, bool) {
	if len(r.rest) == 0 || r.rest[0] != '"' {
		return nil, false
	}
	plain, ascii := true, true
	for n := 1; n < len(r.rest); n++ {
		switch c := r.rest[n]; {
		case c == '"':
			s := r.rest[:n+1]
			r.rest = r.rest[n+1:]
			if r.dropping || plain && (ascii || utf8.Valid(s)) {
				return s[1:n], true
			}

			return unquoted(s)
		case c == '\\':
			escape := escaped(r.rest[n+1:])
			if escape == 0 {
				return nil, false
			}
			plain = false
			n += escape
		case c < ' ':
			return nil, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}

	return nil, false
}

// escaped returns how many bytes follow the backslash of an escape; 0 if it is none.
func escaped(s []byte) int {
	const hex = 4
	switch {
	case len(s) == 0:
		return 0
	case s[0] != 'u':
		return min(1, 1+strings.IndexByte(`"\/bfnrt`, s[0]))
	case len(s) <= hex:
		return 0
	}
	for _, c := range s[1 : hex+1] {
		if !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) {
			return 0
		}
	}

	return hex + 1
}

// unquoted returns what a string in JSON says, as everybody in Go reads it.
func unquoted(quoted []byte) ([]byte, bool) {
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return nil, false
	}

	return []byte(s), true
}

// longest is how many digits an integer may have for it to be sure that it is one of 64 bits.
const longest = 18

func (r *reading) number() bool {
	n := 0
	for n < len(r.rest) && strings.IndexByte("+-.0123456789Ee", r.rest[n]) >= 0 {
		n++
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	digits := bytes.TrimPrefix(s, []byte("-"))
	if len(digits) == 0 || len(digits) > longest || len(digits) > 1 && digits[0] == '0' || bytes.ContainsAny(digits, "+-.Ee") {
		return r.float(s)
	}
	i, err := strconv.ParseInt(string(s), 10, 64)
	if err == nil && !r.dropping {
		r.packer.int(i)
	}

	return err == nil
}

// float reads a number that is no short integer.
func (r *reading) float(s []byte) bool {
	var f float64
	if bytes.IndexByte(s, '.') < 0 || json.Unmarshal(s, &f) != nil {
		return false
	}
	if !r.dropping {
		r.packer.float(f)
	}

	return true
}
