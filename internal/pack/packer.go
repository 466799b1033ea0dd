// Package pack keeps many objects in little memory: each object is one string of bytes in which
// shared strings are numbers. Unpacking is many times faster than decoding JSON. It knows nothing
// of Kubernetes; any package may import it. Start reading at Packer and Object.
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

// Each value begins with a tag. A tag from tagWord on is the first byte of a word's number.
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
	// maxWords is how many words fit into numbers of two bytes.
	maxWords = (math.MaxUint8 + 1 - tagWord) << 8
	// maxWord is the maximal length of a word in bytes.
	maxWord = 128
	// minCount is how often a value must occur to become a word. A word needs more memory than a
	// few copies.
	minCount = 4
	// numCounters is the size of counters.
	numCounters = 1 << 16
	// chunk is the size of an allocation in bytes.
	chunk = 1 << 20
)

// A Packer packs objects. Its objects can be unpacked concurrently, but not while it packs.
type Packer struct {
	words   *words
	chunk   strings.Builder
	buffer  []byte
	scratch []byte
	// decoder reads JSON from source.
	decoder jsontext.Decoder
	source  bytes.Reader
	weight  int64
	seed    maphash.Seed
	// counters count recent values, by their hash modulo numCounters.
	counters []counter
}

type counter struct {
	hash  uint32
	times uint8
}

// words are the strings that objects share: field names and frequent values.
type words struct {
	numbers map[string]int
	// values are boxed, so that unpacking one does not allocate.
	values []any
}

// New returns a Packer.
func New() *Packer {
	return &Packer{words: &words{numbers: map[string]int{}}, seed: maphash.MakeSeed(), counters: make([]counter, numCounters)}
}

// An Object is a packed object. The zero value is none.
type Object struct {
	words *words
	data  string
}

// Clone returns the object in its own memory. Otherwise it shares a chunk with other objects, which
// stays allocated as long as one of them, or a string of one, is in use.
func (o Object) Clone() Object { return Object{words: o.words, data: strings.Clone(o.data)} }

// Pack packs an object with the types of decoded JSON. It does not keep the map. Like Kubernetes'
// DeepCopyJSON, it panics on any other type.
func (p *Packer) Pack(object map[string]any) Object {
	p.begin()
	p.value(object)

	return p.end()
}

// Weight returns the approximate memory of the last object without packing, in bytes.
func (p *Packer) Weight() int64 { return p.weight }

func (p *Packer) begin() { p.buffer, p.weight = p.buffer[:0], 0 }

// end moves the packed bytes into a chunk. The result is part of the chunk: a Builder's String does
// not copy.
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

// These are the approximate sizes in bytes of an interface, a map and a map's field.
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

// open begins a list or an object and reserves its head. It returns the position after the head.
func (p *Packer) open(tag byte) int {
	p.tag(tag)
	if tag == tagObject {
		p.weight += weightObject
	}
	p.buffer = append(p.buffer, make([]byte, head)...)

	return len(p.buffer)
}

// head is the size of the head of a list or object: one byte for the number of entries, two for
// their length in bytes. Both saturate.
const head = 3

func (p *Packer) close(at, entries int) {
	p.buffer = append(p.buffer, tagEnd)
	p.buffer[at-head] = byte(min(entries, math.MaxUint8))                                              //nolint:gosec // It is at most MaxUint8.
	binary.LittleEndian.PutUint16(p.buffer[at-head+1:], uint16(min(len(p.buffer)-at, math.MaxUint16))) //nolint:gosec // It is at most MaxUint16.
}

// name packs a field name, as a word while there is room.
func (p *Packer) name(s []byte) {
	p.weight += weightField + int64(len(s))
	n, ok := p.words.numbers[string(s)]
	if !ok {
		n, ok = p.words.add(s)
	}
	p.text(s, n, ok)
}

// string packs a value, as a word if it is frequent.
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
		p.buffer = append(p.buffer, tagWord+byte(number>>8), byte(number)) //nolint:gosec,mnd // There are at most maxWords.

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
	place := &p.counters[h%numCounters]
	if hash := uint32(h >> 32); place.hash != hash { //nolint:mnd // The upper half is not part of the index.
		*place = counter{hash: hash}
	}
	place.times++

	return place.times >= minCount
}

// add makes a string a word; ok is false if it is too long or there are too many words.
func (w *words) add(s []byte) (number int, ok bool) {
	if len(s) > maxWord || len(w.values) >= maxWords {
		return 0, false
	}
	word := string(s)
	w.numbers[word] = len(w.values)
	w.values = append(w.values, word)

	return len(w.values) - 1, true
}
