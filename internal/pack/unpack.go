package pack

import (
	"encoding/binary"
	"math"
)

// IsNone reports whether there is no object.
func (o Object) IsNone() bool { return o.data == "" }

// Unpack returns a new copy of the fields that a shape selects; nil if there is no object.
func (o Object) Unpack(shape *Shape) map[string]any {
	if o.IsNone() {
		return nil
	}
	u := unpacking(o)
	m, _ := u.value(shape).(map[string]any)

	return m
}

// Field returns the value at a path; nil if it is null or does not exist.
func (o Object) Field(path ...string) any {
	if o.IsNone() {
		return nil
	}
	u := unpacking(o)
	for _, name := range path {
		if !u.find(name) {
			return nil
		}
	}

	return u.value(nil)
}

// IsObject reports whether a field is an object.
func (o Object) IsObject(name string) bool {
	u := unpacking(o)

	return !o.IsNone() && u.find(name) && u.data[0] == tagObject
}

// unpacking is a position in packed data. Only a Packer creates that data, so it is always valid.
type unpacking struct {
	words *words
	data  string
}

func (u *unpacking) byte() byte {
	b := u.data[0]
	u.data = u.data[1:]

	return b
}

func (u *unpacking) uvarint() uint64 {
	var v uint64
	for shift := 0; ; shift += 7 {
		b := u.byte()
		v |= uint64(b&0x7f) << shift //nolint:mnd // As in encoding/binary, which accepts no strings.
		if b < 0x80 {                //nolint:mnd // As above.
			return v
		}
	}
}

// head returns the number of entries of a list or object, and their length in bytes. A maximal
// value means that or more.
func (u *unpacking) head() (entries, length int) {
	s := u.bytes(head)

	return int(s[0]), int(s[1]) | int(s[2])<<8
}

func (u *unpacking) bytes(n int) string {
	s := u.data[:n]
	u.data = u.data[n:]

	return s
}

// text returns the string that begins with the tag, and its boxed value; nil if it is not a word.
func (u *unpacking) text(tag byte) (string, any) {
	if tag >= tagWord {
		boxed := u.words.values[int(tag-tagWord)<<8|int(u.byte())]
		s, _ := boxed.(string)

		return s, boxed
	}

	return u.bytes(int(u.uvarint())), nil //nolint:gosec // It is the length of a string.
}

func (u *unpacking) value(shape *Shape) any {
	switch tag := u.byte(); tag {
	case tagNull:
		return nil
	case tagFalse:
		return false
	case tagTrue:
		return true
	case tagInt:
		return u.int()
	case tagFloat:
		return math.Float64frombits(binary.LittleEndian.Uint64([]byte(u.bytes(8)))) //nolint:mnd // A float has 8 bytes.
	case tagList:
		return u.list(shape)
	case tagObject:
		return u.object(shape)
	default:
		s, boxed := u.text(tag)
		if boxed == nil {
			boxed = s
		}

		return boxed
	}
}

func (u *unpacking) int() int64 {
	v := u.uvarint()
	if v&1 != 0 {
		return ^int64(v >> 1)
	}

	return int64(v >> 1)
}

func (u *unpacking) list(shape *Shape) []any {
	entries, _ := u.head()
	list := make([]any, 0, entries)
	for u.data[0] != tagEnd {
		list = append(list, u.value(shape))
	}
	u.byte()

	return list
}

func (u *unpacking) object(shape *Shape) map[string]any {
	entries, _ := u.head()
	object := make(map[string]any, entries)
	for {
		tag := u.byte()
		if tag == tagEnd {
			return object
		}
		name, _ := u.text(tag)
		if !keeps(shape, name) {
			u.skip()

			continue
		}
		object[name] = u.value(below(shape, name))
	}
}

// find moves to a field of the next object and reports whether it exists. Of fields with one name
// the last counts.
func (u *unpacking) find(name string) bool {
	if u.byte() != tagObject {
		return false
	}
	u.head()
	var found unpacking
	for {
		tag := u.byte()
		if tag == tagEnd {
			break
		}
		s, _ := u.text(tag)
		if s == name {
			found = *u
		}
		u.skip()
	}
	*u = found

	return found.words != nil
}

func (u *unpacking) skip() {
	switch tag := u.byte(); tag {
	case tagNull, tagFalse, tagTrue:
	case tagInt:
		u.uvarint()
	case tagFloat:
		u.bytes(8) //nolint:mnd // A float has 8 bytes.
	case tagList, tagObject:
		u.skipEntries(tag == tagObject)
	default:
		u.text(tag)
	}
}

// skipEntries skips the entries of a list or object.
func (u *unpacking) skipEntries(named bool) {
	if _, length := u.head(); length < math.MaxUint16 {
		u.bytes(length)

		return
	}
	for u.data[0] != tagEnd {
		if named {
			u.text(u.byte())
		}
		u.skip()
	}
	u.byte()
}
