package pack

import (
	"encoding/binary"
	"math"
)

// IsNone reports whether there is no object.
func (o Object) IsNone() bool { return o.data == "" }

// Unpack returns what of the object has a shape, which is the caller's.
func (o Object) Unpack(shape *Shape) map[string]any {
	if o.IsNone() {
		return nil
	}
	u := unpacking(o)
	m, _ := u.value(shape).(map[string]any)

	return m
}

// Field returns the value that a path leads to; nil if that is null or nothing.
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

// unpacking is where somebody is in what was packed. Only a Packer makes an Object, so there is
// always what a tag says.
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
		v |= uint64(b&0x7f) << shift //nolint:mnd // As in encoding/binary, which takes no strings.
		if b < 0x80 {                //nolint:mnd // The same.
			return v
		}
	}
}

// head returns how many entries a list or an object has, and how many bytes these take, or the most
// that it can say.
func (u *unpacking) head() (entries, length int) {
	s := u.bytes(head)

	return int(s[0]), int(s[1]) | int(s[2])<<8
}

func (u *unpacking) bytes(n int) string {
	s := u.data[:n]
	u.data = u.data[n:]

	return s
}

// text returns the string that begins with the tag, and as a value.
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
		return math.Float64frombits(binary.LittleEndian.Uint64([]byte(u.bytes(8)))) //nolint:mnd // It has so many bytes.
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

// find goes to a field of the object that comes next, and reports whether there is one. Of fields
// of one name the last counts.
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
		u.bytes(8) //nolint:mnd // It has so many bytes.
	case tagList, tagObject:
		u.leap(tag == tagObject)
	default:
		u.text(tag)
	}
}

// leap skips the entries of a list or an object.
func (u *unpacking) leap(named bool) {
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
