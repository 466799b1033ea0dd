package pack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Tags are what each value begins with. From tagWord on, a tag is the first byte of the number of a
// word.
const (
	tagNull = iota
	tagFalse
	tagTrue
	tagInt
	tagFloat
	tagString
	tagList
	tagObject
	tagEnd
	tagWord
)

const (
	// maxWords is how many words have a number of two bytes.
	maxWords = (math.MaxUint8 + 1 - tagWord) << 8
	// maxWord is how long a word may be.
	maxWord = 128
	// often is how many times a value must come up before it is a word: a word takes more memory
	// than a few copies.
	often = 4
	// recent is how many of the values that came up last are counted.
	recent = 1 << 16
	// chunk is how much memory is taken at once.
	chunk = 1 << 20
)

// A Packer packs objects. What it has packed can be unpacked by many at a time, but not while it
// packs.
type Packer struct {
	words  *words
	chunk  strings.Builder
	buffer []byte
	// scratch is where a string is while it is packed.
	scratch []byte
	// decoder reads JSON from source.
	decoder jsontext.Decoder
	source  bytes.Reader
	weight  int64
	seed    maphash.Seed
	// seen counts the values that came up last, each where its hash has its place.
	seen []sighting
}

type sighting struct {
	hash  uint32
	times uint8
}

// words are the strings that objects have in common: the names of fields, and the values that come
// up often.
type words struct {
	numbers map[string]int
	// values are boxed, so that to unpack one takes no memory.
	values []any
}

// New returns a Packer.
func New() *Packer {
	return &Packer{words: &words{numbers: map[string]int{}}, seed: maphash.MakeSeed(), seen: make([]sighting, recent)}
}

// An Object is one that was packed. The zero value is none.
type Object struct {
	words *words
	data  string
}

// Clone returns the same object in memory of its own. What a Packer returns is in memory with those
// that it has packed before and after, which is there as long as anybody has one of them, or a
// string of one.
func (o Object) Clone() Object { return Object{words: o.words, data: strings.Clone(o.data)} }

// Pack packs an object as JSON is decoded; it does not keep it. Like DeepCopyJSON of Kubernetes, it
// panics if anything else is in it.
func (p *Packer) Pack(object map[string]any) Object {
	p.begin()
	p.value(object)

	return p.end()
}

// Weight is about how much memory the last object that was packed takes when it is not packed.
func (p *Packer) Weight() int64 { return p.weight }

func (p *Packer) begin() { p.buffer, p.weight = p.buffer[:0], 0 }

// end moves what was packed to where it stays: a string of a Builder that has room for it is part
// of what that has, and no copy.
func (p *Packer) end() Object {
	if p.chunk.Len()+len(p.buffer) > p.chunk.Cap() {
		p.chunk = strings.Builder{}
		p.chunk.Grow(max(chunk, len(p.buffer)))
	}
	from := p.chunk.Len()
	p.chunk.Write(p.buffer)

	return Object{words: p.words, data: p.chunk.String()[from:]}
}

func (p *Packer) value(v any) {
	switch v := v.(type) {
	case nil:
		p.tag(tagNull)
	case bool:
		p.bool(v)
	case int64:
		p.int(v)
	case float64:
		p.float(v)
	case string:
		p.scratch = append(p.scratch[:0], v...)
		p.string(p.scratch)
	case []any:
		at := p.open(tagList)
		for _, entry := range v {
			p.value(entry)
		}
		p.close(at, len(v))
	case map[string]any:
		at := p.open(tagObject)
		for name, entry := range v {
			p.scratch = append(p.scratch[:0], name...)
			p.name(p.scratch)
			p.value(entry)
		}
		p.close(at, len(v))
	default:
		panic(fmt.Sprintf("cannot pack a %T, which JSON is not decoded to", v))
	}
}

// What a value takes when it is not packed, about: an interface, a map, and what a map has for each
// of its fields.
const (
	weightValue  = 16
	weightObject = 48
	weightField  = 64
)

func (p *Packer) tag(tag byte) {
	p.buffer = append(p.buffer, tag)
	p.weight += weightValue
}

func (p *Packer) bool(v bool) {
	if v {
		p.tag(tagTrue)
	} else {
		p.tag(tagFalse)
	}
}

func (p *Packer) int(v int64) {
	p.tag(tagInt)
	p.buffer = binary.AppendVarint(p.buffer, v)
}

func (p *Packer) float(v float64) {
	p.tag(tagFloat)
	p.buffer = binary.LittleEndian.AppendUint64(p.buffer, math.Float64bits(v))
}

// open begins a list or an object, and leaves room for its head.
func (p *Packer) open(tag byte) int {
	p.tag(tag)
	if tag == tagObject {
		p.weight += weightObject
	}
	p.buffer = append(p.buffer, make([]byte, head)...)

	return len(p.buffer)
}

// head is what a list or an object begins with: how many entries it has and how many bytes these
// take, as far as one byte and two can say.
const head = 3

func (p *Packer) close(at, entries int) {
	p.buffer = append(p.buffer, tagEnd)
	p.buffer[at-head] = byte(min(entries, math.MaxUint8))                                              //nolint:gosec // It is no more than that.
	binary.LittleEndian.PutUint16(p.buffer[at-head+1:], uint16(min(len(p.buffer)-at, math.MaxUint16))) //nolint:gosec // The same.
}

// name packs the name of a field, which is a word while there is room for it.
func (p *Packer) name(s []byte) {
	p.weight += weightField + int64(len(s))
	n, ok := p.words.numbers[string(s)]
	if !ok {
		n, ok = p.words.add(s)
	}
	p.text(s, n, ok)
}

// string packs a value, which is a word if it came up often.
func (p *Packer) string(s []byte) {
	p.weight += weightValue + int64(len(s))
	n, ok := p.words.numbers[string(s)]
	if !ok && p.isFrequent(s) {
		n, ok = p.words.add(s)
	}
	p.text(s, n, ok)
}

func (p *Packer) text(s []byte, number int, isWord bool) {
	if isWord {
		p.buffer = append(p.buffer, tagWord+byte(number>>8), byte(number)) //nolint:gosec,mnd // There are no more than maxWords.

		return
	}
	p.buffer = binary.AppendUvarint(append(p.buffer, tagString), uint64(len(s)))
	p.buffer = append(p.buffer, s...)
}

func (p *Packer) isFrequent(s []byte) bool {
	if len(s) > maxWord || len(p.words.values) >= maxWords {
		return false
	}
	h := maphash.Bytes(p.seed, s)
	place := &p.seen[h%recent]
	if hash := uint32(h >> 32); place.hash != hash { //nolint:mnd // It is the half that is not in the place.
		*place = sighting{hash: hash}
	}
	place.times++

	return place.times >= often
}

// add makes a string a word; ok is false if it is too long for that, or there are too many.
func (w *words) add(s []byte) (number int, ok bool) {
	if len(s) > maxWord || len(w.values) >= maxWords {
		return 0, false
	}
	word := string(s)
	w.numbers[word] = len(w.values)
	w.values = append(w.values, word)

	return len(w.values) - 1, true
}
