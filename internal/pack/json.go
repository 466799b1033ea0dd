package pack

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// deepest is how deep values are nested at most. Objects of Kubernetes are far from that.
const deepest = 100

// JSON packs an object from its JSON: what decoding it as Kubernetes does and taking fields off
// gives. It takes what an API server writes, and ok is false for anything that it is not sure to
// read as Kubernetes does, be it wrong or only unusual.
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

// read packs the value that comes next. It is false if it is not sure of what it reads.
func (p *Packer) read(shape *Shape) bool {
	switch kind := p.decoder.PeekKind(); kind { //nolint:exhaustive // The others are constants, or no value.
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

// readEntries reads the object or the list that comes next, entry by entry.
func (p *Packer) readEntries(tag byte, entry func() (kept, ok bool)) bool {
	if _, err := p.decoder.ReadToken(); err != nil || p.decoder.StackDepth() > deepest {
		return false
	}
	at, entries := p.open(tag), 0
	for {
		switch p.decoder.PeekKind() { //nolint:exhaustive // The others begin an entry.
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

// readString reads a string, and returns what it is without its escapes, until the next is read.
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

// longest is how many digits an integer may have for it to be sure that it is one of 64 bits.
const longest = 18

func (p *Packer) number(s []byte) bool {
	if bytes.ContainsAny(s, ".eE") || len(bytes.TrimPrefix(s, []byte("-"))) > longest {
		return p.decimal(s)
	}
	i, err := strconv.ParseInt(string(s), 10, 64)
	if err == nil {
		p.int(i)
	}

	return err == nil
}

// decimal packs a number that is no short integer.
func (p *Packer) decimal(s []byte) bool {
	var f float64
	if bytes.IndexByte(s, '.') < 0 || json.Unmarshal(s, &f) != nil {
		return false
	}
	p.float(f)

	return true
}
