package pack

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth limits the nesting of values. Kubernetes objects are far from it.
const maxDepth = 100

// JSON packs the fields of a shape from an object's JSON. The result equals decoding it as
// Kubernetes does and removing the other fields. ok is false for JSON that Kubernetes may read in
// another way, which includes invalid JSON. It accepts whatever an API server writes.
func (p *Packer) JSON(document []byte, shape *Shape) (o Object, ok bool) {
	p.begin()
	p.source.Reset(document)
	p.decoder.Reset(&p.source, jsontext.AllowDuplicateNames(true))
	if p.decoder.PeekKind() != jsontext.KindBeginObject || !p.read(shape) {
		return Object{}, false
	}
	if _, err := p.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return Object{}, false
	}

	return p.end(), true
}

// read packs the next value. It returns false if Kubernetes may read it in another way.
func (p *Packer) read(shape *Shape) bool {
	switch kind := p.decoder.PeekKind(); kind { //nolint:exhaustive // The other kinds are constants, or no value.
	case jsontext.KindBeginObject:
		return p.readObject(shape)
	case jsontext.KindBeginArray:
		return p.readList(shape)
	case jsontext.KindString:
		s, ok := p.readString()
		if ok {
			p.string(s)
		}

		return ok
	case jsontext.KindNumber:
		n, err := p.decoder.ReadValue()

		return err == nil && p.number(n)
	default:
		t, err := p.decoder.ReadToken()
		if err != nil {
			return false
		}
		if kind == jsontext.KindNull {
			p.tag(tagNull)
		} else {
			p.bool(t.Bool())
		}

		return true
	}
}

// readEntries reads the next object or list, entry by entry.
func (p *Packer) readEntries(tag byte, entry func() (kept, ok bool)) bool {
	if _, err := p.decoder.ReadToken(); err != nil || p.decoder.StackDepth() > maxDepth {
		return false
	}
	at, entries := p.open(tag), 0
	for {
		switch p.decoder.PeekKind() { //nolint:exhaustive // Any other kind begins an entry.
		case jsontext.KindEndObject, jsontext.KindEndArray:
			_, err := p.decoder.ReadToken()
			p.close(at, entries)

			return err == nil
		case jsontext.KindInvalid:
			return false
		}
		kept, ok := entry()
		if !ok {
			return false
		}
		if kept {
			entries++
		}
	}
}

func (p *Packer) readList(shape *Shape) bool {
	return p.readEntries(tagList, func() (kept, ok bool) { return true, p.read(shape) })
}

func (p *Packer) readObject(shape *Shape) bool {
	return p.readEntries(tagObject, func() (kept, ok bool) {
		name, ok := p.readString()
		if !ok {
			return false, false
		}
		if !keeps(shape, name) {
			return false, p.decoder.SkipValue() == nil
		}
		p.name(name)

		return true, p.read(below(shape, name))
	})
}

// readString reads a string and returns it unescaped. The result is valid until the next call.
func (p *Packer) readString() ([]byte, bool) {
	quoted, err := p.decoder.ReadValue()
	if err != nil || quoted.Kind() != jsontext.KindString {
		return nil, false
	}
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1], true
	}
	p.scratch, err = jsontext.AppendUnquote(p.scratch[:0], quoted)

	return p.scratch, err == nil
}

// number packs an integer of 64 bits, or a number with a fraction.
func (p *Packer) number(s []byte) bool {
	if bytes.IndexByte(s, '.') < 0 {
		i, err := strconv.ParseInt(string(s), 10, 64)
		p.int(i)

		return err == nil
	}
	f, err := strconv.ParseFloat(string(s), 64)
	p.float(f)

	return err == nil
}
